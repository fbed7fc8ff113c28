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
void run_q4x(const MatmulCall& call) noexcept;

}  // namespace lockstep::quant::avx2
