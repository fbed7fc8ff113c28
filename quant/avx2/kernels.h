// What the AVX2 instruction set (with FMA and F16C) hands to dispatch.cpp.
#pragma once

#include "quant/encode/encoders.h"
#include "quant/kernels.h"

namespace lockstep::quant::avx2 {

extern const RowKernels kRowKernels;
extern const SearchingEncoders kEncoders;

// As MatmulKernel::run, on the 8-row panels of packing.h.
void run_q4_0(const MatmulCall& call) noexcept;
void run_q4_1(const MatmulCall& call) noexcept;
void run_q5_0(const MatmulCall& call) noexcept;
void run_q5_1(const MatmulCall& call) noexcept;
void run_q8_0(const MatmulCall& call) noexcept;
void run_q2_k(const MatmulCall& call) noexcept;
void run_q3_k(const MatmulCall& call) noexcept;
void run_q4_k(const MatmulCall& call) noexcept;
void run_q5_k(const MatmulCall& call) noexcept;
void run_q6_k(const MatmulCall& call) noexcept;
void run_iq4_nl(const MatmulCall& call) noexcept;
void run_iq4_xs(const MatmulCall& call) noexcept;
void run_mxfp4(const MatmulCall& call) noexcept;
void run_nvfp4(const MatmulCall& call) noexcept;
void run_q4x(const MatmulCall& call) noexcept;

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
