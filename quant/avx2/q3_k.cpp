// Q3_K times Q8_K activations on AVX2. Weights stay unsigned (0..7); the offset of 4 is taken off
// with the activation sums, scaled like the products: sum sc (q - 4) y = sum sc q y - 4 sum sc
// sum y. Panels hold 8 quads of 3 bits in 3 steps such that six of them need no putting together.
#include "quant/avx2/group_scales.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileQ3_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 880;
  static constexpr std::size_t kGroupScales = 16;
  static constexpr std::size_t kQuants = 112;
  static constexpr std::size_t kRunBytes = 96;

  // sc_j - 32 of groups 4i .. 4i + 3, an int8 each.
  struct Scales {
    __m256i of[4];
  };

  LOCKSTEP_INLINE static Scales load_group_scales(const std::byte* at) noexcept {
    const __m256i four_bits = _mm256_set1_epi8(15);
    const __m256i upper_two = _mm256_set1_epi8(0x30);
    const __m256i w0 = load_step(at);
    const __m256i w1 = load_step(at + 32);
    const __m256i w2 = load_step(at + 64);
    const auto join = [=](__m256i low, __m256i upper) noexcept {
      const __m256i joined =
          _mm256_or_si256(_mm256_and_si256(low, four_bits), _mm256_and_si256(upper, upper_two));
      return _mm256_sub_epi8(joined, _mm256_set1_epi8(32));
    };
    return {{join(w0, _mm256_slli_epi16(w2, 4)), join(w1, _mm256_slli_epi16(w2, 2)),
             join(_mm256_srli_epi16(w0, 4), w2),
             join(_mm256_srli_epi16(w1, 4), _mm256_srli_epi16(w2, 2))}};
  }

  // The two whole quads of a step, and the two bits that are left of it.
  LOCKSTEP_INLINE static __m256i first_quad(__m256i step) noexcept {
    return _mm256_and_si256(step, _mm256_set1_epi8(7));
  }
  LOCKSTEP_INLINE static __m256i second_quad(__m256i step) noexcept {
    return _mm256_and_si256(_mm256_srli_epi16(step, 3), _mm256_set1_epi8(7));
  }
  LOCKSTEP_INLINE static __m256i low_bits(__m256i step) noexcept {
    return _mm256_and_si256(_mm256_srli_epi16(step, 6), _mm256_set1_epi8(3));
  }
  // Bit `at` of every byte moved to bit 2.
  LOCKSTEP_INLINE static __m256i third_bit(__m256i step, int at) noexcept {
    return _mm256_and_si256(_mm256_srli_epi16(step, at - 2), _mm256_set1_epi8(4));
  }

  // isum[t] += scale * products over one group of 16 columns. A lane adds 8 products of at most
  // 7 * 127 in int16.
  template <int N>
  LOCKSTEP_INLINE static void add_group(const __m256i (&quads)[4], __m256i scale,
                                        const Tokens<N>& tokens, std::size_t column,
                                        __m256i (&isum)[N]) noexcept {
    __m256i sums[N];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const std::int8_t* y = tokens.q(t, column) + 4 * i;
        const __m256i a = _mm256_maddubs_epi16(quads[i], broadcast4(y));
        sums[t] = i == 0 ? a : _mm256_add_epi16(sums[t], a);
        pin(sums[t]);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      isum[t] = _mm256_add_epi32(isum[t], _mm256_madd_epi16(sums[t], scale));
      pin(isum[t]);
    }
  }

  // Both groups of a run of 32 columns. `scales`: a lane of four, those of this run are bytes
  // `first` and first + 1.
  template <int N>
  LOCKSTEP_INLINE static void add_run(const std::byte* steps, __m256i scales, int first,
                                      const Tokens<N>& tokens, std::size_t column,
                                      __m256i (&isum)[N]) noexcept {
    const __m256i s0 = load_step(steps);
    const __m256i s1 = load_step(steps + 32);
    const __m256i s2 = load_step(steps + 64);
    const __m256i even[4] = {first_quad(s0), second_quad(s0), first_quad(s1), second_quad(s1)};
    add_group<N>(even, spread_signed(scales, first), tokens, column, isum);
    const __m256i odd[4] = {first_quad(s2), second_quad(s2),
                            _mm256_or_si256(low_bits(s0), third_bit(s2, 6)),
                            _mm256_or_si256(low_bits(s1), third_bit(s2, 7))};
    add_group<N>(odd, spread_signed(scales, first + 1), tokens, column + 16, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const Scales scales = load_group_scales(panel + kGroupScales);
      __m256i isum[N];
#pragma GCC unroll 8
      for (int pair = 0; pair < 8; ++pair) {
        const __m256i scale = spread_signed(scales.of[pair / 2], pair % 2 * 2, pair % 2 * 2 + 1);
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i sums = tokens.sum_pair(t, 16 * b + 2 * static_cast<std::size_t>(pair));
          const __m256i scaled = _mm256_madd_epi16(sums, scale);
          isum[t] = pair == 0 ? scaled : _mm256_add_epi32(isum[t], scaled);
          pin(isum[t]);
        }
      }
      for (int t = 0; t < N; ++t) {
        isum[t] = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), isum[t]), 2);
      }
#pragma GCC unroll 8
      for (int pair = 0; pair < 8; ++pair) {
        add_run<N>(panel + kQuants + kRunBytes * static_cast<std::size_t>(pair),
                   scales.of[pair / 2], pair % 2 * 2, tokens,
                   b * kBlockValues + 32 * static_cast<std::size_t>(pair), isum);
      }
      add_scaled<N>(load_scales(panel), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_q3_k(const MatmulCall& call) noexcept { run_panels<TileQ3_K>(call, Format::q8_k); }

}  // namespace lockstep::quant::avx2
