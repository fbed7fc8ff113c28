// Q4_0 times Q8_0 activations on AVX2. Weights stay unsigned (0..15); the offset of 8 is taken off
// with the activation sums: sum (q - 8) y = sum q y - 8 sum y.
#include "quant/avx2/kernels.h"
#include "quant/avx2/nibbles.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ4_0 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 144;
  static constexpr std::size_t kScaleBytes = 16;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i offset = _mm256_set1_epi16(-8);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256i sums[N];
      nibble_group<N>(panel + kScaleBytes, tokens, b * kBlockValues, sums);
      const __m256 d = load_scales(panel);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const __m256i isum = _mm256_add_epi32(_mm256_madd_epi16(sums[t], ones),
                                              _mm256_madd_epi16(tokens.sum_pair(t, 2 * b), offset));
        acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, tokens.scale_of(t, b)), _mm256_cvtepi32_ps(isum),
                                 acc[t]);
      }
    }
  }
};

}  // namespace

void run_q4_0(const MatmulCall& call) noexcept { run_panels<TileQ4_0>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
