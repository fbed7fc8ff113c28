// The row kernels and the peak loops for AVX-512: row_kernels.inl.h over one 512-bit register.
#include "quant/avx512/kernels.h"

#include "quant/avx512/simd.h"

#include "quant/peaks.inl.h"
#include "quant/row_kernels.inl.h"

namespace lockstep::quant::avx512 {

namespace {

struct Peak {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr std::uint64_t kBytes = 64;
  static constexpr std::uint64_t kFloats = 16;
  static Ints ints() noexcept { return _mm512_set1_epi8(1); }
  static Floats floats() noexcept { return _mm512_set1_ps(0.5f); }
  static Ints dot(Ints acc, Ints x) noexcept { return _mm512_dpbusd_epi32(acc, x, x); }
  static Floats fma(Floats acc, Floats x) noexcept { return _mm512_fmadd_ps(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+v"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+v"(x)); }
};

}  // namespace

constinit const RowKernels kRowKernels = make_row_kernels<Avx512Simd>();
constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();

}  // namespace lockstep::quant::avx512
