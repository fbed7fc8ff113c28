// Q5_K times Q8_0 activations on AVX2. The vpmaddwd that widens the products multiplies them with
// the group's 6-bit scale; a group has an activation scale of its own, so products and minima are
// summed in f32, group by group.
#include "quant/avx2/group_scales.h"
#include "quant/avx2/halves.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ5_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1408;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 128;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const SixBitScales groups = load_six_bit_scales(panel + kGroupScales);
      __m256 sum[N], min_sum[N];
      for (int t = 0; t < N; ++t) sum[t] = min_sum[t] = _mm256_setzero_ps();
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        const std::size_t run = 8 * b + static_cast<std::size_t>(g);
        __m256i isum[N];
        five_bit_group<N>(panel + kQuants + kFiveBitGroupBytes * static_cast<std::size_t>(g),
                          spread(groups.scales[g / 4], g % 4), tokens, 32 * run, isum);
        const __m256i min = spread(groups.mins[g / 4], g % 4);
        add_group_and_min<N>(tokens, run, isum, min, sum, min_sum);
      }
      add_block_and_min<N>(load_scales(panel), load_scales(panel + kMins), sum, min_sum, acc);
    }
  }
};

}  // namespace

void run_q5_k(const MatmulCall& call) noexcept { run_panels<TileQ5_K>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
