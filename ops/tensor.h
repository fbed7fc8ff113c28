// A typed view of memory, as ops read and write it. Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/shape.h"
#include "quant/format.h"

namespace lockstep::ops {

// What a value of the graph holds. q8_0 rows are blocks of 32 as in a model file (a cache of keys
// or values). The two act_ types are quantized activations: each row of `columns` values is stored
// as quant::ActivationLayout says.
enum class DType : std::uint8_t { f32, f16, i32, q8_0, act_q8_0, act_q8_k };

std::string_view name_of(DType dtype) noexcept;

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  bool operator==(const TensorType&) const noexcept = default;
  // Bytes of one row of `shape.columns()` values, and of the whole, stored densely.
  std::size_t row_bytes() const noexcept;
  std::size_t bytes() const noexcept;
};

struct Tensor {
  TensorType type;
  std::byte* data = nullptr;
  // Bytes from one row (all dimensions but the last, flattened) to the next: at least row_bytes().
  std::size_t row_stride = 0;
  // Bytes from one worker's private copy to the next; 0 for the usual shared tensor.
  std::size_t copy_stride = 0;

  std::size_t rows() const noexcept { return type.shape.rows(); }
  std::size_t columns() const noexcept { return type.shape.columns(); }
  template <class T>
  T* row(std::size_t i) const noexcept {
    return reinterpret_cast<T*>(data + i * row_stride);
  }
};

// A dense view of `data`.
Tensor make_tensor(const TensorType& type, void* data) noexcept;

}  // namespace lockstep::ops
