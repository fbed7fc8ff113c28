// The inner loop of formats whose 4-bit quants are indices into 16 signed levels: one vpshufb turns
// 32 indices into levels of 8 bits. vpmaddubsw wants one unsigned side, so the sign of each level
// moves to its activation: w * y = |w| * (sign(w) y). Rejected: level + 128 = 16 high + low, two
// lookups of 4 bits each whose products need no widening before the end of a group. It takes as
// many instructions per step and measured 3 to 10 % slower with g++ 12 and clang 14 alike.
#pragma once

#include "quant/avx2/panel.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

namespace lockstep::quant::avx2 {
namespace {

// 16 levels, known at compile time and moved by `kOffset`, in both halves of a register. Elements
// are read one by one: a pointer to the table would leave a copy of it in this object file.
template <const std::int8_t (&kLevels)[16], int kOffset = 0>
LOCKSTEP_INLINE __m256i level_register() noexcept {
  const auto at = [](int i) noexcept { return static_cast<char>(kLevels[i] + kOffset); };
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6),
                                                   at(7), at(8), at(9), at(10), at(11), at(12),
                                                   at(13), at(14), at(15)));
}

// isum += scale * sum of weights * activations over one step of 8-bit weights; `fresh`: isum =.
// One pair of products is at most 2 * 128 * 127 = 32512: exact in int16, but two pairs would not
// be, so every step is widened, and vpmaddwd multiplies with the scale as it does so.
template <int N>
LOCKSTEP_INLINE void level_step(__m256i weights, __m256i scale, const Tokens<N>& tokens,
                                std::size_t column, bool fresh, __m256i (&isum)[N]) noexcept {
  const __m256i magnitudes = _mm256_abs_epi8(weights);
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    const __m256i y = broadcast4(tokens.q(t, column));
    const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(y, weights));
    const __m256i wide = _mm256_madd_epi16(pairs, scale);
    isum[t] = fresh ? wide : _mm256_add_epi32(isum[t], wide);
    pin(isum[t]);
  }
}

// isum[t] += scale * sum over 32 columns of level * y; `fresh`: isum[t] =. `steps`: 4 steps of
// nibbles, packed as Q4_0 is. `levels`: 16 of them in both halves, -128 allowed. `scale`: 16 int16,
// two equal ones per row; ones if there is no scale.
template <int N>
LOCKSTEP_INLINE void level_group(const std::byte* steps, __m256i levels, __m256i scale,
                                 const Tokens<N>& tokens, std::size_t column, bool fresh,
                                 __m256i (&isum)[N]) noexcept {
  const __m256i low_mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const std::size_t at = column + 4 * static_cast<std::size_t>(s);
    const __m256i pairs = load_step(steps + 32 * s);
    const __m256i low = _mm256_and_si256(pairs, low_mask);
    level_step<N>(_mm256_shuffle_epi8(levels, low), scale, tokens, at, fresh && s == 0, isum);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_mask);
    level_step<N>(_mm256_shuffle_epi8(levels, high), scale, tokens, at + 16, false, isum);
  }
}

}  // namespace
}  // namespace lockstep::quant::avx2

#endif
