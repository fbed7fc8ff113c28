// Q6_K times Q8_0 activations on AVX2. Weights stay unsigned (0..63); the offset of 32 is taken off
// with the activation sums, scaled like the products: sum sc (q - 32) y = sum sc q y - 32 sum sc
// sum y. Two pairs of products are at most 4 * 63 * 127 = 32004 and fit an int16; vpmaddwd then
// widens them and multiplies with the group's scale.
#include "quant/avx2/group_scales.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ6_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1680;
  static constexpr std::size_t kGroupScales = 16;
  static constexpr std::size_t kQuants = 144;
  static constexpr std::size_t kGroupBytes = 96;

  // One byte 0..63 per weight: four low bits, and two upper bits already in place.
  LOCKSTEP_INLINE static __m256i join(__m256i low, __m256i upper) noexcept {
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(0x0f)),
                           _mm256_and_si256(upper, _mm256_set1_epi8(0x30)));
  }

  // Adds two steps, columns y .. y + 3 and y + 4 .. y + 7, times the scale of their group.
  template <int N>
  LOCKSTEP_INLINE static void add_steps(__m256i first, __m256i second, __m256i scale,
                                        const Tokens<N>& tokens, std::size_t column,
                                        __m256i (&isum)[N]) noexcept {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const std::int8_t* y = tokens.q(t, column);
      const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(first, broadcast4(y)),
                                             _mm256_maddubs_epi16(second, broadcast4(y + 4)));
      isum[t] = _mm256_add_epi32(isum[t], _mm256_madd_epi16(pairs, scale));
      pin(isum[t]);
    }
  }

  // isum = -32 * scale * sum of the activations, over two groups.
  template <int N>
  LOCKSTEP_INLINE static void begin_pair(__m256i scales, const Tokens<N>& tokens, std::size_t run,
                                         __m256i (&isum)[N]) noexcept {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const __m256i offset = _mm256_madd_epi16(tokens.sum_pair(t, run), scales);
      isum[t] = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), offset), 5);
    }
  }

  // isum += scale * products, over one group of 16 columns.
  template <int N>
  LOCKSTEP_INLINE static void add_group(const std::byte* steps, __m256i scale,
                                        const Tokens<N>& tokens, std::size_t column,
                                        __m256i (&isum)[N]) noexcept {
    const __m256i low02 = load_step(steps);
    const __m256i low13 = load_step(steps + 32);
    const __m256i upper = load_step(steps + 64);
    add_steps<N>(join(low02, _mm256_slli_epi16(upper, 4)), join(low13, _mm256_slli_epi16(upper, 2)),
                 scale, tokens, column, isum);
    add_steps<N>(join(_mm256_srli_epi16(low02, 4), upper),
                 join(_mm256_srli_epi16(low13, 4), _mm256_srli_epi16(upper, 2)), scale, tokens,
                 column + 8, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256 sum[N];
      for (int t = 0; t < N; ++t) sum[t] = _mm256_setzero_ps();
        // Two groups share one activation scale.
#pragma GCC unroll 8
      for (int pair = 0; pair < 8; ++pair) {
        const std::size_t run = 8 * b + static_cast<std::size_t>(pair);
        const __m256i bytes = load_step(panel + kGroupScales + 32 * (pair / 2));
        __m256i isum[N];
        begin_pair<N>(spread_signed(bytes, pair % 2 * 2, pair % 2 * 2 + 1), tokens, 2 * run, isum);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const int g = 2 * pair + half;
          add_group<N>(panel + kQuants + kGroupBytes * static_cast<std::size_t>(g),
                       spread_signed(bytes, g % 4), tokens,
                       32 * run + 16 * static_cast<std::size_t>(half), isum);
        }
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          sum[t] = _mm256_fmadd_ps(tokens.scale_of(t, run), _mm256_cvtepi32_ps(isum[t]), sum[t]);
        }
      }
      const __m256 d = load_scales(panel);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) acc[t] = _mm256_fmadd_ps(d, sum[t], acc[t]);
    }
  }
};

}  // namespace

void run_q6_k(const MatmulCall& call) noexcept { run_panels<TileQ6_K>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
