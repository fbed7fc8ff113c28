// What the scalar instruction set hands to dispatch.cpp.
#pragma once

#include <cstddef>
#include <span>

#include "quant/encode/encoders.h"
#include "quant/kernels.h"
#include "quant/peaks.h"

namespace lockstep::quant::scalar {

extern const RowKernels kRowKernels;
extern const PeakLoops kPeakLoops;
extern const SearchingEncoders kEncoders;

// Upper bound of the number of formats in the table, hence of kernels made by matmul_kernels().
inline constexpr std::size_t kMaxMatmulKernels = 64;

// One kernel for every format with a vec_dot, whatever its encoding: adding a format to the table
// adds its kernel here. The kernels have no names yet. Fills `out` (kMaxMatmulKernels entries) from
// the front; returns how many.
std::size_t matmul_kernels(std::span<MatmulKernel> out) noexcept;

}  // namespace lockstep::quant::scalar
