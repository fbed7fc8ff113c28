// Q4_1 times Q8_0 activations on AVX2: the products of nibbles.h with the scale, and the sum of the
// activations with the minimum.
#include "quant/avx2/kernels.h"
#include "quant/avx2/nibbles.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ4_1 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 160;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kQuants = 32;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256i sums[N];
      nibble_group<N>(panel + kQuants, tokens, b * kBlockValues, sums);
      __m256i isum[N];
      for (int t = 0; t < N; ++t) isum[t] = _mm256_madd_epi16(sums[t], ones);
      add_scaled_and_min<N>(load_scales(panel), load_scales(panel + kMins), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_q4_1(const MatmulCall& call) noexcept { run_panels<TileQ4_1>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
