// Shape checks shared by the ops: one wording for every ShapeError, "op: operand is f32 [3, 5],
// expected f32 [3, 4]", so that a message always names the op, the operand and both extents.
#pragma once

#include <string>
#include <string_view>

#include "ops/shape.h"
#include "ops/tensor.h"

namespace lockstep::ops {

// "f32 [3, 64]"
inline std::string to_string(const TensorType& type) {
  return std::string(name_of(type.dtype)) + " " + to_string(type.shape);
}

[[noreturn]] inline void shape_error(std::string_view op, std::string_view operand,
                                     const TensorType& found, std::string_view expected) {
  throw ShapeError(std::string(op) + ": " + std::string(operand) + " is " + to_string(found) +
                   ", expected " + std::string(expected));
}

inline void expect_type(std::string_view op, std::string_view operand, const TensorType& found,
                        const TensorType& expected) {
  if (found != expected) shape_error(op, operand, found, to_string(expected));
}

// An element type, at least one dimension and at least one column: what every op that works on rows
// needs.
inline void expect_rows(std::string_view op, std::string_view operand, const TensorType& found,
                        DType dtype) {
  if (found.dtype != dtype || found.shape.rank() == 0 || found.shape.columns() == 0) {
    shape_error(op, operand, found, std::string(name_of(dtype)) + " [..., columns >= 1]");
  }
}

// As expect_rows, with exactly two dimensions: [tokens, columns].
inline void expect_matrix(std::string_view op, std::string_view operand, const TensorType& found,
                          DType dtype) {
  if (found.dtype != dtype || found.shape.rank() != 2 || found.shape.columns() == 0) {
    shape_error(op, operand, found, std::string(name_of(dtype)) + " [tokens, columns >= 1]");
  }
}

}  // namespace lockstep::ops
