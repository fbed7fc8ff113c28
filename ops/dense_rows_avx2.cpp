// The dense kernels of dense_rows.inl.h for AVX2.
#include "ops/dense_rows.inl.h"

namespace lockstep::ops {
namespace {

constexpr auto kKernels =
    make_kernels(quant::Isa::avx2, {"f32/avx2/r24", "f16/avx2/r24", "bf16/avx2/r24"});

}  // namespace

std::span<const quant::MatmulKernel, 3> dense_rows_avx2() noexcept { return kKernels; }

}  // namespace lockstep::ops
