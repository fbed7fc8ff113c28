// The inner loop of weights that are too large for nibbles.h and still unsigned and small, up to
// 31: 32 columns in two int16 sums of 16 columns each. Q5_0, Q5_1 and Q5_K bring 5-bit quants,
// MXFP4 bytes that a table made of 4 bits.
#pragma once

#include "quant/avx2/panel.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

namespace lockstep::quant::avx2 {
namespace {

// Weights of columns 4s .. 4s + 3 and 16 + 4s .. 16 + 4s + 3, a byte each.
struct StepWeights {
  __m256i low, high;
};

// isum[t] = scale * sum over 32 columns of weight * y, with the weights of step s from unpack(s).
// A lane adds 8 products of at most 31 * 127 before it is widened: below 31496, nothing saturates.
template <int N, class Unpack>
LOCKSTEP_INLINE void halves_group(Unpack unpack, __m256i scale, const Tokens<N>& tokens,
                                  std::size_t column, __m256i (&isum)[N]) noexcept {
  __m256i low[N], high[N];
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const StepWeights weights = unpack(s);
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const std::int8_t* y = tokens.q(t, column) + 4 * s;
      const __m256i a = _mm256_maddubs_epi16(weights.low, broadcast4(y));
      low[t] = s == 0 ? a : _mm256_add_epi16(low[t], a);
      pin(low[t]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const std::int8_t* y = tokens.q(t, column) + 4 * s;
      const __m256i a = _mm256_maddubs_epi16(weights.high, broadcast4(y + 16));
      high[t] = s == 0 ? a : _mm256_add_epi16(high[t], a);
      pin(high[t]);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    isum[t] = _mm256_add_epi32(_mm256_madd_epi16(low[t], scale), _mm256_madd_epi16(high[t], scale));
  }
}

constexpr std::size_t kFiveBitGroupBytes = 160;

// halves_group() of 5-bit weights. `group`: a step of fifth bits, then 4 steps of nibbles.
template <int N>
LOCKSTEP_INLINE void five_bit_group(const std::byte* group, __m256i scale, const Tokens<N>& tokens,
                                    std::size_t column, __m256i (&isum)[N]) noexcept {
  const __m256i low_mask = _mm256_set1_epi8(15);
  const __m256i fifth_mask = _mm256_set1_epi8(16);
  const __m256i fifth = load_step(group);
  const auto unpack = [=](int s) __attribute__((always_inline)) {
    const __m256i pairs = load_step(group + 32 + 32 * s);
    return StepWeights{
        _mm256_or_si256(_mm256_and_si256(pairs, low_mask),
                        _mm256_and_si256(_mm256_slli_epi16(fifth, 4 - s), fifth_mask)),
        _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_mask),
                        _mm256_and_si256(_mm256_srli_epi16(fifth, s), fifth_mask))};
  };
  halves_group<N>(unpack, scale, tokens, column, isum);
}

}  // namespace
}  // namespace lockstep::quant::avx2

#endif
