// The row kernels and the peak loops for AVX2: row_kernels.inl.h over two 256-bit registers.
#include "quant/avx2/kernels.h"

#include "quant/avx2/peak.h"
#include "quant/avx2/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::avx2 {

namespace {

struct Peak : YmmPeak {
  static Ints dot(Ints acc, Ints x) noexcept {
    keep(x);  // else the product is a constant
    return _mm256_add_epi16(acc, _mm256_maddubs_epi16(x, x));
  }
};

}  // namespace

constinit const RowKernels kRowKernels = make_row_kernels<Avx2Simd>();
constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();

}  // namespace lockstep::quant::avx2
