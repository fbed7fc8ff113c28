// What the NEON instruction set, which every 64-bit ARM processor has, hands to dispatch.cpp.
#pragma once

#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::neon {

extern const RowKernels kRowKernels;
extern const PeakLoops kPeakLoops;
// On the 8-row panels of packing.h.
extern const PanelRuns kPanelRuns;

}  // namespace lockstep::quant::neon
