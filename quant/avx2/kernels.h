// What the AVX2 instruction set (with FMA and F16C) hands to dispatch.cpp.
#pragma once

#include "quant/kernels.h"

namespace lockstep::quant::avx2 {

extern const RowKernels kRowKernels;

// As MatmulKernel::run, on the 8-row panels of packing.h.
void run_q4_0(const MatmulCall& call) noexcept;
void run_q8_0(const MatmulCall& call) noexcept;
void run_q4_k(const MatmulCall& call) noexcept;
void run_q6_k(const MatmulCall& call) noexcept;

// The same on rows as the file has them, panels of one.
void run_iq1_s(const MatmulCall& call) noexcept;
void run_iq1_m(const MatmulCall& call) noexcept;
void run_iq2_xxs(const MatmulCall& call) noexcept;
void run_iq2_xs(const MatmulCall& call) noexcept;
void run_iq2_s(const MatmulCall& call) noexcept;
void run_iq3_xxs(const MatmulCall& call) noexcept;
void run_iq3_s(const MatmulCall& call) noexcept;
void run_tq1_0(const MatmulCall& call) noexcept;
void run_tq2_0(const MatmulCall& call) noexcept;

}  // namespace lockstep::quant::avx2
