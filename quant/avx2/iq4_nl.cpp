// IQ4_NL times Q8_0 activations on AVX2: levels.h with the format's levels and no group scale.
#include "quant/formats/iq4_nl.h"
#include "quant/avx2/kernels.h"
#include "quant/avx2/levels.h"

namespace lockstep::quant::avx2 {
namespace {

struct TileIQ4_NL {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = 144;
  static constexpr std::size_t kScaleBytes = 16;

  template <int N>
  LOCKSTEP_INLINE static void compute(const std::byte* panel, std::size_t blocks,
                                      const Tokens<N>& tokens, __m256 (&acc)[N]) noexcept {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i levels = level_register<iq4_nl::kLevels>();
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      __m256i isum[N];
      level_group<N>(panel + kScaleBytes, levels, ones, tokens, b * kBlockValues, true, isum);
      add_scaled<N>(load_scales(panel), tokens, b, isum, acc);
    }
  }
};

}  // namespace

void run_iq4_nl(const MatmulCall& call) noexcept { run_panels<TileIQ4_NL>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx2
