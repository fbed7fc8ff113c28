// IQ4_XS times Q8_K activations on AVX2: levels.h with the levels of IQ4_NL, where the group's
// signed scale takes the place of the ones that vpmaddwd multiplies with.
#include "quant/formats/iq4_xs.h"
#include "quant/avx2/group_scales.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/levels.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileIQ4_XS {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1088;
  static constexpr std::size_t kScalesHigh = 16;
  static constexpr std::size_t kScalesLow = 32;
  static constexpr std::size_t kQuants = 64;

  // sc_j - 32 of the even groups and of the odd ones, an int8 each.
  struct Scales {
    __m256i of[2];
  };

  // The upper two bits of all scales of a row are a word of 16 bits. With each of its bytes
  // doubled, byte i of a lane holds those of groups 2i and 2i + 1, in its lower half for even i and
  // in its upper half for odd i.
  LOCKSTEP_INLINE static Scales load_group_scales(const std::byte* panel) noexcept {
    const __m256i doubled =
        _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7,  //
                         8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15);
    const __m256i words = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + kScalesHigh)));
    const __m256i upper = _mm256_shuffle_epi8(words, doubled);
    const __m256i low = load_step(panel + kScalesLow);
    const __m256i four_bits = _mm256_set1_epi8(15);
    const __m256i from_lower = _mm256_set1_epi16(0x0030);
    const __m256i from_upper = _mm256_set1_epi16(0x3000);
    const auto join = [=](__m256i nibbles, __m256i lower_half, __m256i upper_half) noexcept {
      const __m256i two_bits = _mm256_or_si256(_mm256_and_si256(lower_half, from_lower),
                                               _mm256_and_si256(upper_half, from_upper));
      const __m256i joined = _mm256_or_si256(_mm256_and_si256(nibbles, four_bits), two_bits);
      return _mm256_sub_epi8(joined, _mm256_set1_epi8(32));
    };
    return {{join(low, _mm256_slli_epi16(upper, 4), upper),
             join(_mm256_srli_epi16(low, 4), _mm256_slli_epi16(upper, 2),
                  _mm256_srli_epi16(upper, 2))}};
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i levels = level_register<iq4_xs::kLevels>();
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const Scales scales = load_group_scales(panel);
      __m256i isum[N];
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        level_group<N>(panel + kQuants + 128 * g, levels, spread_signed(scales.of[g % 2], g / 2),
                       tokens, b * kBlockValues + 32 * static_cast<std::size_t>(g), g == 0, isum);
      }
      add_scaled<N>(load_scales(panel), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_iq4_xs(const MatmulCall& call) noexcept { run_panels<TileIQ4_XS>(call, Format::q8_k); }

}  // namespace lockstep::quant::avx2
