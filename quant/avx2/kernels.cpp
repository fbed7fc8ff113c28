// The row kernels and the peak loops for AVX2: row_kernels.inl.h over two 256-bit registers.
#include "quant/avx2/kernels.h"

#include "quant/avx2/simd.h"

#include "quant/peaks.inl.h"
#include "quant/row_kernels.inl.h"

namespace lockstep::quant::avx2 {

namespace {

struct Peak {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr std::uint64_t kBytes = 32;
  static constexpr std::uint64_t kFloats = 8;
  static Ints ints() noexcept { return _mm256_set1_epi8(1); }
  static Floats floats() noexcept { return _mm256_set1_ps(0.5f); }
  static Ints dot(Ints acc, Ints x) noexcept {
    keep(x);  // else the product is a constant
    return _mm256_add_epi16(acc, _mm256_maddubs_epi16(x, x));
  }
  static Floats fma(Floats acc, Floats x) noexcept { return _mm256_fmadd_ps(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+x"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+x"(x)); }
};

}  // namespace

constinit const RowKernels kRowKernels = make_row_kernels<Avx2Simd>();
constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();

}  // namespace lockstep::quant::avx2
