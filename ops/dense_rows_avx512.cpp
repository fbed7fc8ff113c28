// The dense kernels of dense_rows.inl.h for AVX-512.
#include "ops/dense_rows.inl.h"

namespace lockstep::ops {
namespace {

constexpr auto kKernels =
    make_kernels(quant::Isa::avx512, {"f32/avx512/r48", "f16/avx512/r48", "bf16/avx512/r48"});

}  // namespace

std::span<const quant::MatmulKernel, 3> dense_rows_avx512() noexcept { return kKernels; }

}  // namespace lockstep::ops
