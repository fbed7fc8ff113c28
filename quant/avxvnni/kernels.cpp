// The peak loops for AVX-VNNI.
#include "quant/avxvnni/kernels.h"

#include <immintrin.h>

#include "quant/peaks.inl.h"

namespace lockstep::quant::avxvnni {
namespace {

struct Peak {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr std::uint64_t kBytes = 32;
  static constexpr std::uint64_t kFloats = 8;
  static Ints ints() noexcept { return _mm256_set1_epi8(1); }
  static Floats floats() noexcept { return _mm256_set1_ps(0.5f); }
  static Ints dot(Ints acc, Ints x) noexcept { return _mm256_dpbusd_avx_epi32(acc, x, x); }
  static Floats fma(Floats acc, Floats x) noexcept { return _mm256_fmadd_ps(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+x"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+x"(x)); }
};

}  // namespace

constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();

}  // namespace lockstep::quant::avxvnni
