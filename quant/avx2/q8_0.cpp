// Q8_0 times Q8_0 activations on AVX2. vpmaddubsw wants one unsigned side, so the sign of each
// weight moves to its activation: w * y = |w| * (sign(w) y). A weight of -128 has |w| = 128, which
// fits an unsigned byte, and activations stop at 127, so their negation is exact. One pair of
// products is at most 2 * 128 * 127 = 32512: exact in int16, but two pairs would not be, so every
// step is widened.
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ8_0 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 272;
  static constexpr std::size_t kScaleBytes = 16;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      if constexpr (N == 1) prefetch(panel, kBlockBytes);
      __m256i isum[N];
#pragma GCC unroll 8
      for (int s = 0; s < 8; ++s) {
        const __m256i weights = load_step(panel + kScaleBytes + 32 * s);
        const __m256i magnitudes = _mm256_abs_epi8(weights);
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i y = broadcast4(tokens.q(t, b * kBlockValues) + 4 * s);
          const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(y, weights));
          const __m256i wide = _mm256_madd_epi16(pairs, ones);
          isum[t] = s == 0 ? wide : _mm256_add_epi32(isum[t], wide);
          pin(isum[t]);
        }
      }
      const __m256 d = load_scales(panel);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, tokens.scale_of(t, b)),
                                 _mm256_cvtepi32_ps(isum[t]), acc[t]);
      }
    }
  }
};

}  // namespace

void run_q8_0(const MatmulCall& call) noexcept { run_panels<TileQ8_0>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
