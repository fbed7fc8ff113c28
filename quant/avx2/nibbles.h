// The inner loop that Q4_0 and Q4_K share: 32 columns of 4-bit weights of 8 rows, times N tokens.
#pragma once

#include "quant/avx2/panel.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

namespace lockstep::quant::avx2 {
namespace {

constexpr std::size_t kNibbleGroupBytes = 128;

// sums[t]: 16 int16 lanes, two per row, whose sum is the sum over the 32 columns of q * y. A lane
// adds 16 products of at most 15 * 127 = 1905, hence stays below 30480: nothing saturates, and
// nothing needs widening before the end of the group.
template <int N>
LOCKSTEP_INLINE void nibble_group(const std::byte* steps, const Tokens<N>& tokens,
                                  std::size_t column, __m256i (&sums)[N]) noexcept {
  const __m256i low_mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const __m256i pairs = load_step(steps + 32 * s);
    const __m256i low = _mm256_and_si256(pairs, low_mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_mask);
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const std::int8_t* y = tokens.q(t, column) + 4 * s;
      const __m256i a = _mm256_maddubs_epi16(low, broadcast4(y));
      sums[t] = s == 0 ? a : _mm256_add_epi16(sums[t], a);
      pin(sums[t]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const std::int8_t* y = tokens.q(t, column) + 4 * s;
      sums[t] = _mm256_add_epi16(sums[t], _mm256_maddubs_epi16(high, broadcast4(y + 16)));
      pin(sums[t]);
    }
  }
}

}  // namespace
}  // namespace lockstep::quant::avx2

#endif
