// Q2_K times Q8_0 activations on AVX2. A group is one step: four times two bits in every byte. The
// vpmaddwd that widens its products multiplies them with the group's scale; two groups share one
// activation scale and are summed in integers first.
#include "quant/avx2/group_scales.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ2_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 672;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 160;

  // isum[t] += scale * products over one group of 16 columns; `fresh`: isum[t] =. A lane adds 8
  // products of at most 3 * 127 in int16.
  template <int N>
  LOCKSTEP_INLINE static void add_group(__m256i quads, __m256i scale, const Tokens<N>& tokens,
                                        std::size_t column, bool fresh,
                                        __m256i (&isum)[N]) noexcept {
    const __m256i low_mask = _mm256_set1_epi8(3);
    __m256i sums[N];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256i weights = _mm256_and_si256(_mm256_srli_epi16(quads, 2 * i), low_mask);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const std::int8_t* y = tokens.q(t, column) + 4 * i;
        const __m256i a = _mm256_maddubs_epi16(weights, broadcast4(y));
        sums[t] = i == 0 ? a : _mm256_add_epi16(sums[t], a);
        pin(sums[t]);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const __m256i scaled = _mm256_madd_epi16(sums[t], scale);
      isum[t] = fresh ? scaled : _mm256_add_epi32(isum[t], scaled);
    }
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i four_bits = _mm256_set1_epi8(15);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256 sum[N], min_sum[N];
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) sum[t] = min_sum[t] = _mm256_setzero_ps();
#pragma GCC unroll 8
      for (int pair = 0; pair < 8; ++pair) {
        const std::size_t run = 8 * b + static_cast<std::size_t>(pair);
        const __m256i bytes = load_step(panel + kGroupScales + 32 * (pair / 2));
        const __m256i scales = _mm256_and_si256(bytes, four_bits);
        const __m256i mins = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), four_bits);
        const int first = pair % 2 * 2;  // byte of the even group
        const std::byte* quants = panel + kQuants + 64 * pair;
        __m256i isum[N];
        add_group<N>(load_step(quants), spread(scales, first), tokens, 32 * run, true, isum);
        add_group<N>(load_step(quants + 32), spread(scales, first + 1), tokens, 32 * run + 16,
                     false, isum);
        const __m256i min = spread(mins, first, first + 1);
        add_group_and_min<N>(tokens, run, isum, min, sum, min_sum);
      }
      add_block_and_min<N>(load_scales(panel), load_scales(panel + kMins), sum, min_sum, acc);
    }
  }
};

}  // namespace

void run_q2_k(const MatmulCall& call) noexcept { run_panels<TileQ2_K>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
