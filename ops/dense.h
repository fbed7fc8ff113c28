// What the dense kernels of all instruction sets share: the recurrence, and where each is declared.
//
// y = c0 + c1 + ..., added in this order from 0, where c is the dot product over one chunk of
// kDenseDepth columns: acc = fma(w[k], x[k], acc) for k in order, from 0. A chunk of one panel
// fits the first-level cache beside the tokens it meets (f32 on AVX-512 just so), and shorter sums
// round less.
#pragma once

#include <cstddef>
#include <span>

#include "quant/kernels.h"

namespace lockstep::ops {

inline constexpr std::size_t kDenseDepth = 256;
// Up to here every panel is read from memory once and meets all tokens as they are; with more it
// pays to interleave the tokens and to take the panels in chunks (f16, one core: 24 tokens 1.15 and
// 1.08 times as fast without, 64 tokens 1.05 and 0.95, AVX2 and AVX-512).
inline constexpr std::size_t kDenseFewTokens = 32;

#if defined(LOCKSTEP_HAS_AVX2)
// f32, f16, bf16 in this order, as all the following.
std::span<const quant::MatmulKernel, 3> dense_rows_avx2() noexcept;
#endif
#if defined(LOCKSTEP_HAS_AVX512)
std::span<const quant::MatmulKernel, 3> dense_rows_avx512() noexcept;
#endif

}  // namespace lockstep::ops
