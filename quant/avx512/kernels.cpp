// The row kernels for AVX-512: row_kernels.inl.h over one 512-bit register.
#include "quant/avx512/kernels.h"

#include "quant/avx512/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::avx512 {

constinit const RowKernels kRowKernels = make_row_kernels<Avx512Simd>();

}  // namespace lockstep::quant::avx512
