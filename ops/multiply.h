// What the nodes that multiply with packed weights share.
#pragma once

#include <cstddef>
#include <string_view>

#include "ops/matrix.h"
#include "ops/tensor.h"

namespace lockstep::ops {

// What the matrix wants to be multiplied with: f32 or quantized activations.
DType activation_dtype(const ShardedMatrix& matrix) noexcept;

// Throws ShapeError unless the matrix is complete: a kernel, and shards that tile the rows in
// order, from panel edge to panel edge.
void check_matrix(std::string_view op, const ShardedMatrix& matrix);

struct MultiplyArgs {
  const std::byte* activations = nullptr;  // [tokens], of activation_dtype()
  std::size_t activation_stride = 0;       // bytes
  std::size_t tokens = 0;
  float* y = nullptr;        // [tokens, matrix.rows]
  std::size_t y_stride = 0;  // values
  unsigned node = 0;         // of the worker: Io::node
};

// y[:, part] = (activations W^T)[:, part]; both edges of the part are multiples of the panel.
void multiply(const ShardedMatrix& matrix, Slice part, const MultiplyArgs& args) noexcept;

}  // namespace lockstep::ops
