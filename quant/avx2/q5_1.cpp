// Q5_1 times Q8_0 activations on AVX2: the products of halves.h with the scale, and the sum of the
// activations with the minimum.
#include "quant/avx2/halves.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ5_1 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 192;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kQuants = 32;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256i isum[N];
      five_bit_group<N>(panel + kQuants, ones, tokens, b * kBlockValues, isum);
      add_scaled_and_min<N>(load_scales(panel), load_scales(panel + kMins), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_q5_1(const MatmulCall& call) noexcept { run_panels<TileQ5_1>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
