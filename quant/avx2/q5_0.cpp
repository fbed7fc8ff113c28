// Q5_0 times Q8_0 activations on AVX2. Weights stay unsigned (0..31); the offset of 16 is taken off
// with the activation sums: sum (q - 16) y = sum q y - 16 sum y.
#include "quant/avx2/halves.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ5_0 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 176;
  static constexpr std::size_t kScaleBytes = 16;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i offset = _mm256_set1_epi16(-16);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256i isum[N];
      five_bit_group<N>(panel + kScaleBytes, ones, tokens, b * kBlockValues, isum);
      const __m256 d = load_scales(panel);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const __m256i moved =
            _mm256_add_epi32(isum[t], _mm256_madd_epi16(tokens.sum_pair(t, 2 * b), offset));
        acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, tokens.scale_of(t, b)), _mm256_cvtepi32_ps(moved),
                                 acc[t]);
      }
    }
  }
};

}  // namespace

void run_q5_0(const MatmulCall& call) noexcept { run_panels<TileQ5_0>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
