// What the dotprod instruction set hands to dispatch.cpp; row arithmetic is that of NEON.
#pragma once

#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::dotprod {

extern const PeakLoops kPeakLoops;
// On the 8-row panels of packing.h.
extern const PanelRuns kPanelRuns;

}  // namespace lockstep::quant::dotprod
