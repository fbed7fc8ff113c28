// The row kernels for AVX2: row_kernels.inl.h over two 256-bit registers.
#include "quant/avx2/kernels.h"

#include "quant/avx2/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::avx2 {

constinit const RowKernels kRowKernels = make_row_kernels<Avx2Simd>();

}  // namespace lockstep::quant::avx2
