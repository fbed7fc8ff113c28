// What the AVX-VNNI instruction set hands to dispatch.cpp; row arithmetic is that of AVX2.
#pragma once

#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::avxvnni {

extern const PeakLoops kPeakLoops;
// On the 8-row panels of packing.h.
extern const PanelRuns kPanelRuns;

}  // namespace lockstep::quant::avxvnni
