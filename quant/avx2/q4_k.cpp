// Q4_K times Q8_K activations on AVX2. The int16 sums of a group of 32 columns are widened by the
// same vpmaddwd that multiplies them with the group's 6-bit scale; the minima meet the activation
// sums in another, since both sums of a group lie side by side.
#include "quant/avx2/group_scales.h"
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

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const SixBitScales groups = load_six_bit_scales(panel + kGroupScales);
      __m256i isum[N];
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        __m256i sums[N];
        nibble_group<N>(panel + kQuants + kNibbleGroupBytes * static_cast<std::size_t>(g), tokens,
                        b * kBlockValues + 32 * static_cast<std::size_t>(g), sums);
        const __m256i scale = spread(groups.scales[g / 4], g % 4);
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
        const __m256i min = spread(groups.mins[g / 4], g % 4);
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
