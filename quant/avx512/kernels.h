// What the AVX-512 VNNI instruction set hands to dispatch.cpp.
#pragma once

#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::avx512 {

extern const RowKernels kRowKernels;
extern const PeakLoops kPeakLoops;
// On the 8-row panels of packing.h.
extern const PanelRuns kBlockRuns;
extern const PanelRuns kKBlockRuns;

}  // namespace lockstep::quant::avx512
