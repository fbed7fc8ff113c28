// MXFP4 times Q8_0 activations on AVX2. Doubled values are -12 .. 12; the table that vpshufb looks
// them up in holds them moved up by 12, so that they are unsigned and two int16 sums are enough,
// and the offset is taken off with the activation sums.
#include "quant/avx2/halves.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/levels.h"
#include "quant/formats/e2m1.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileMXFP4 {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 136;
  static constexpr std::size_t kScaleBytes = 8;

  // Half of 2^(code - 127): the code is the exponent of an f32. Code 0, which as an exponent would
  // mean zero, becomes the subnormal 2^-127 before it is halved; 255 becomes NaN.
  LOCKSTEP_INLINE static __m256 load_half_scales(const std::byte* at) noexcept {
    const __m256i codes =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
    const __m256i nan = _mm256_srli_epi32(_mm256_cmpeq_epi32(codes, _mm256_set1_epi32(255)), 1);
    const __m256i power =
        _mm256_max_epi32(_mm256_slli_epi32(codes, 23), _mm256_set1_epi32(0x00400000));
    return _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(power, nan)), _mm256_set1_ps(0.5f));
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i offset = _mm256_set1_epi16(-12);
    const __m256i low_mask = _mm256_set1_epi8(15);
    const __m256i moved_up = level_register<e2m1::kDoubled, 12>();
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const auto unpack = [=](int s) __attribute__((always_inline)) {
        const __m256i pairs = load_step(panel + kScaleBytes + 32 * s);
        return StepWeights{
            _mm256_shuffle_epi8(moved_up, _mm256_and_si256(pairs, low_mask)),
            _mm256_shuffle_epi8(moved_up, _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_mask))};
      };
      __m256i isum[N];
      halves_group<N>(unpack, ones, tokens, b * kBlockValues, isum);
      const __m256 half = load_half_scales(panel);
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        const __m256i moved_back =
            _mm256_add_epi32(isum[t], _mm256_madd_epi16(tokens.sum_pair(t, 2 * b), offset));
        acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(half, tokens.scale_of(t, b)),
                                 _mm256_cvtepi32_ps(moved_back), acc[t]);
      }
    }
  }
};

}  // namespace

void run_mxfp4(const MatmulCall& call) noexcept { run_panels<TileMXFP4>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
