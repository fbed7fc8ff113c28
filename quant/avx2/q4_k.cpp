// Q4_K times Q8_K activations on AVX2. The int16 sums of a group of 32 columns are widened by the
// same vpmaddwd that multiplies them with the group's 6-bit scale; the minima meet the activation
// sums in another, since both sums of a group lie side by side.
#include "quant/avx2/kernels.h"
#include "quant/avx2/nibbles.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ4_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1152;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 128;

  // Byte j of every 32-bit lane, as two equal int16.
  LOCKSTEP_INLINE static __m256i spread(__m256i bytes, int j) noexcept {
    const int control = j | (j << 16) | static_cast<int>(0x80008000u);
    const __m256i lane = _mm256_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c, 0, 0x00040004,
                                           0x00080008, 0x000c000c);
    return _mm256_shuffle_epi8(bytes, _mm256_add_epi32(lane, _mm256_set1_epi32(control)));
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i six_bits = _mm256_set1_epi8(0x3f);
    const __m256i four_bits = _mm256_set1_epi8(0x0f);
    const __m256i upper_two = _mm256_set1_epi8(0x30);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      if constexpr (N == 1) prefetch(panel, kBlockBytes);
      const __m256i w0 = load_step(panel + kGroupScales);
      const __m256i w1 = load_step(panel + kGroupScales + 32);
      const __m256i w2 = load_step(panel + kGroupScales + 64);
      // Scales and minima of groups 0-3 and 4-7, a byte each.
      const __m256i scales[2] = {
          _mm256_and_si256(w0, six_bits),
          _mm256_or_si256(_mm256_and_si256(w2, four_bits),
                          _mm256_and_si256(_mm256_srli_epi16(w0, 2), upper_two))};
      const __m256i mins[2] = {
          _mm256_and_si256(w1, six_bits),
          _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(w2, 4), four_bits),
                          _mm256_and_si256(_mm256_srli_epi16(w1, 2), upper_two))};
      __m256i isum[N];
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        __m256i sums[N];
        nibble_group<N>(panel + kQuants + kNibbleGroupBytes * static_cast<std::size_t>(g), tokens,
                        b * kBlockValues + 32 * static_cast<std::size_t>(g), sums);
        const __m256i scale = spread(scales[g / 4], g % 4);
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i scaled = _mm256_madd_epi16(sums[t], scale);
          isum[t] = g == 0 ? scaled : _mm256_add_epi32(isum[t], scaled);
          pin(isum[t]);
        }
      }
      __m256i msum[N];
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        const __m256i min = spread(mins[g / 4], g % 4);
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i scaled =
              _mm256_madd_epi16(tokens.sum_pair(t, 16 * b + 2 * static_cast<std::size_t>(g)), min);
          msum[t] = g == 0 ? scaled : _mm256_add_epi32(msum[t], scaled);
          pin(msum[t]);
        }
      }
      const __m256 d = load_scales(panel);
      const __m256 dmin = load_scales(panel + kMins);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const __m256 da = tokens.scale_of(t, b);
        acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, da), _mm256_cvtepi32_ps(isum[t]), acc[t]);
        acc[t] = _mm256_fnmadd_ps(_mm256_mul_ps(dmin, da), _mm256_cvtepi32_ps(msum[t]), acc[t]);
      }
    }
  }
};

}  // namespace

void run_q4_k(const MatmulCall& call) noexcept { run_panels<TileQ4_K>(call, Format::q8_k); }

}  // namespace lockstep::quant::avx2
