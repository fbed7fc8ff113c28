// The row kernels in plain C++: correct on every processor, and what the vector ones are tested
// against.
#include "quant/scalar/kernels.h"

#include "quant/scalar/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::scalar {

constinit const RowKernels kRowKernels = make_row_kernels<ScalarSimd>();

}  // namespace lockstep::quant::scalar
