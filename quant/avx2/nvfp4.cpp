// NVFP4 times Q8_0 activations on AVX2. As MXFP4, values are looked up moved up by 12; a group of
// 16 columns fits one int16 sum (8 products of at most 24 * 127), and has a float scale of its own.
#include "quant/avx2/kernels.h"
#include "quant/avx2/levels.h"
#include "quant/formats/e2m1.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileNVFP4 {
  static constexpr std::size_t kBlockValues = 64;
  static constexpr std::size_t kBlockBytes = 288;
  static constexpr std::size_t kScaleBytes = 32;
  static constexpr std::size_t kGroupBytes = 64;

  // Half of 8 unsigned E4M3. Their bits are those of an f16 whose exponent has a bias larger by 8:
  // subnormals come out right, and the product is exact. 127 becomes NaN, the sign is not looked
  // at.
  LOCKSTEP_INLINE static __m256 load_half_scales(const std::byte* at) noexcept {
    const __m128i codes =
        _mm_and_si128(_mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))),
                      _mm_set1_epi16(127));
    const __m128i nan = _mm_cmpeq_epi16(codes, _mm_set1_epi16(127));
    const __m128i halves = _mm_or_si128(_mm_slli_epi16(codes, 7), nan);
    return _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(128.0f));
  }

  // sums[t]: products of 16 columns, two int16 per row.
  template <int N>
  LOCKSTEP_INLINE static void add_group(const std::byte* steps, __m256i moved_up,
                                        const Tokens<N>& tokens, std::size_t column,
                                        __m256i (&sums)[N]) noexcept {
    const __m256i low_mask = _mm256_set1_epi8(15);
#pragma GCC unroll 2
    for (int s = 0; s < 2; ++s) {
      const __m256i pairs = load_step(steps + 32 * s);
      const __m256i low = _mm256_shuffle_epi8(moved_up, _mm256_and_si256(pairs, low_mask));
      const __m256i high =
          _mm256_shuffle_epi8(moved_up, _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_mask));
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const std::int8_t* y = tokens.q(t, column) + 4 * s;
        const __m256i a = _mm256_maddubs_epi16(low, broadcast4(y));
        sums[t] = s == 0 ? a : _mm256_add_epi16(sums[t], a);
        pin(sums[t]);
        sums[t] = _mm256_add_epi16(sums[t], _mm256_maddubs_epi16(high, broadcast4(y + 8)));
        pin(sums[t]);
      }
    }
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    // Activation sums come in pairs: -12 meets the one of the group, 0 its neighbour.
    const __m256i offsets[2] = {_mm256_set1_epi32(0x0000fff4),
                                _mm256_set1_epi32(static_cast<int>(0xfff40000u))};
    const __m256i moved_up = level_register<e2m1::kDoubled, 12>();
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        const std::size_t run = 2 * b + static_cast<std::size_t>(g / 2);
        __m256i sums[N];
        add_group<N>(panel + kScaleBytes + kGroupBytes * static_cast<std::size_t>(g), moved_up,
                     tokens, 64 * b + 16 * static_cast<std::size_t>(g), sums);
        const __m256 half = load_half_scales(panel + 8 * g);
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i isum =
              _mm256_add_epi32(_mm256_madd_epi16(sums[t], ones),
                               _mm256_madd_epi16(tokens.sum_pair(t, 2 * run), offsets[g % 2]));
          acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(half, tokens.scale_of(t, run)),
                                   _mm256_cvtepi32_ps(isum), acc[t]);
        }
      }
    }
  }
};

}  // namespace

void run_nvfp4(const MatmulCall& call) noexcept { run_panels<TileNVFP4>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
