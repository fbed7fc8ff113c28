// Q8_0 times Q8_0 activations on AVX2: the weights are 8-bit levels as they stand, so all of it is
// the step of levels.h. A weight of -128 is allowed there, and activations stop at 127, so their
// negation is exact.
#include "quant/avx2/kernels.h"
#include "quant/avx2/levels.h"

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
      prefetch(panel, kBlockBytes);
      __m256i isum[N];
#pragma GCC unroll 8
      for (int s = 0; s < 8; ++s) {
        level_step<N>(load_step(panel + kScaleBytes + 32 * s), ones, tokens,
                      b * kBlockValues + 4 * static_cast<std::size_t>(s), s == 0, isum);
      }
      add_scaled<N>(load_scales(panel), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_q8_0(const MatmulCall& call) noexcept { run_panels<TileQ8_0>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
