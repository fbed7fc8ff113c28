// The row kernels for NEON: row_kernels.inl.h over four 128-bit registers.
#include "quant/neon/kernels.h"

#include "quant/neon/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::neon {

constinit const RowKernels kRowKernels = make_row_kernels<NeonSimd>();

}  // namespace lockstep::quant::neon
