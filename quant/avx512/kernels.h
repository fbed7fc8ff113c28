// What the AVX-512 VNNI instruction set hands to dispatch.cpp.
#pragma once

#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::avx512 {

extern const RowKernels kRowKernels;
extern const PeakLoops kPeakLoops;

// On the 8-row panels of packing.h.
MatmulRun run_q4_0, run_q4_1, run_q5_0, run_q5_1, run_q8_0;
MatmulRun run_q2_k, run_q3_k, run_q4_k, run_q5_k, run_q6_k;
MatmulRun run_iq4_nl, run_iq4_xs, run_mxfp4, run_nvfp4, run_q4x;

inline constexpr PanelRuns kPanelRuns{
    .q4_0 = run_q4_0,
    .q4_1 = run_q4_1,
    .q5_0 = run_q5_0,
    .q5_1 = run_q5_1,
    .q8_0 = run_q8_0,
    .q2_k = run_q2_k,
    .q3_k = run_q3_k,
    .q4_k = run_q4_k,
    .q5_k = run_q5_k,
    .q6_k = run_q6_k,
    .iq4_nl = run_iq4_nl,
    .iq4_xs = run_iq4_xs,
    .mxfp4 = run_mxfp4,
    .nvfp4 = run_nvfp4,
    .q4x = run_q4x,
};

}  // namespace lockstep::quant::avx512
