// Group scales of the K-quants: taking the bytes of one group out of row lanes, as the int16 that
// vpmaddwd multiplies with, and the 6-bit scales and minima that Q4_K and Q5_K share.
#pragma once

#include "quant/avx2/panel.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

namespace lockstep::quant::avx2 {
namespace {

// Bytes i and j of every 32-bit lane, as two unsigned int16.
LOCKSTEP_INLINE __m256i spread(__m256i bytes, int i, int j) noexcept {
  const int control = i | (j << 16) | static_cast<int>(0x80008000u);
  const __m256i lane = _mm256_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c, 0, 0x00040004,
                                         0x00080008, 0x000c000c);
  return _mm256_shuffle_epi8(bytes, _mm256_add_epi32(lane, _mm256_set1_epi32(control)));
}

LOCKSTEP_INLINE __m256i spread(__m256i bytes, int j) noexcept { return spread(bytes, j, j); }

// As spread(), of signed bytes: moved to the upper byte of each half, then shifted down.
LOCKSTEP_INLINE __m256i spread_signed(__m256i bytes, int i, int j) noexcept {
  const int control = (i << 8) | (j << 24) | 0x00800080;
  const __m256i lane = _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00, 0, 0x04000400,
                                         0x08000800, 0x0c000c00);
  const __m256i upper =
      _mm256_shuffle_epi8(bytes, _mm256_add_epi32(lane, _mm256_set1_epi32(control)));
  return _mm256_srai_epi16(upper, 8);
}

LOCKSTEP_INLINE __m256i spread_signed(__m256i bytes, int j) noexcept {
  return spread_signed(bytes, j, j);
}

// Scales and minima of groups 0-3 and 4-7, a byte each.
struct SixBitScales {
  __m256i scales[2], mins[2];
};

// `at`: 3 steps with the 12 scale bytes of Q4_K and Q5_K.
LOCKSTEP_INLINE SixBitScales load_six_bit_scales(const std::byte* at) noexcept {
  const __m256i six_bits = _mm256_set1_epi8(0x3f);
  const __m256i four_bits = _mm256_set1_epi8(0x0f);
  const __m256i upper_two = _mm256_set1_epi8(0x30);
  const __m256i w0 = load_step(at);
  const __m256i w1 = load_step(at + 32);
  const __m256i w2 = load_step(at + 64);
  return {{_mm256_and_si256(w0, six_bits),
           _mm256_or_si256(_mm256_and_si256(w2, four_bits),
                           _mm256_and_si256(_mm256_srli_epi16(w0, 2), upper_two))},
          {_mm256_and_si256(w1, six_bits),
           _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(w2, 4), four_bits),
                           _mm256_and_si256(_mm256_srli_epi16(w1, 2), upper_two))}};
}

// Adds a group of 32 columns whose activations have one scale: its products, and its minimum times
// the sums of the activations. `run`: number of the group in the row.
template <int N>
LOCKSTEP_INLINE void add_group_and_min(const Tokens<N>& tokens, std::size_t run,
                                       const __m256i (&isum)[N], __m256i min, __m256 (&sum)[N],
                                       __m256 (&min_sum)[N]) noexcept {
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    const __m256 da = tokens.scale_of(t, run);
    const __m256i msum = _mm256_madd_epi16(tokens.sum_pair(t, 2 * run), min);
    sum[t] = _mm256_fmadd_ps(da, _mm256_cvtepi32_ps(isum[t]), sum[t]);
    min_sum[t] = _mm256_fmadd_ps(da, _mm256_cvtepi32_ps(msum), min_sum[t]);
  }
}

// Adds a block of such groups.
template <int N>
LOCKSTEP_INLINE void add_block_and_min(__m256 d, __m256 dmin, const __m256 (&sum)[N],
                                       const __m256 (&min_sum)[N], __m256 (&acc)[N]) noexcept {
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_fmadd_ps(d, sum[t], acc[t]);
    acc[t] = _mm256_fnmadd_ps(dmin, min_sum[t], acc[t]);
  }
}

}  // namespace
}  // namespace lockstep::quant::avx2

#endif
