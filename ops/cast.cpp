// Copies a value to a dense one, changing the element type between f32 and f16 on the way if asked.
#include <cstring>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

bool is_plain(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i32;
}

class Cast final : public Op {
 public:
  Cast(const quant::RowKernels& kernels, const Shape& shape, DType dtype)
      : kernels_(kernels), rows_(shape.rows()), columns_(shape.columns()), dtype_(dtype) {}

  std::string_view name() const noexcept override { return "cast"; }
  std::string detail() const override { return std::string(name_of(dtype_)); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const bool floats = x.dtype != DType::i32 && dtype_ != DType::i32;
    if (!is_plain(x.dtype) || !is_plain(dtype_) || !(floats || x.dtype == dtype_)) {
      shape_error("cast", "x", x, "a type that converts to " + std::string(name_of(dtype_)));
    }
    return {dtype_, x.shape};
  }

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(rows_);
  }
  bool accepts(const Partition& other) const override {
    return is_rows(other, rows_) || is_columns(other, columns_, 1);
  }
  Reach reach(std::size_t) const override { return Reach::own; }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    const std::size_t count = mine.columns.size();
    const Tensor& x = io.inputs[0];
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      if (x.type.dtype == dtype_) {
        const std::size_t size = dtype_ == DType::f16 ? sizeof(std::uint16_t) : sizeof(float);
        std::memcpy(io.output.row<std::byte>(i) + first * size,
                    x.row<const std::byte>(i) + first * size, count * size);
      } else if (dtype_ == DType::f16) {
        kernels_.f32_to_f16(x.row<const float>(i) + first, io.output.row<std::uint16_t>(i) + first,
                            count);
      } else {
        kernels_.f16_to_f32(x.row<const std::uint16_t>(i) + first, io.output.row<float>(i) + first,
                            count);
      }
    }
  }

 private:
  const quant::RowKernels& kernels_;
  std::size_t rows_;
  std::size_t columns_;
  DType dtype_;
};

}  // namespace

Value cast(Graph& graph, Value x, DType dtype) {
  return graph.add(std::make_unique<Cast>(graph.rows(), graph.type(x).shape, dtype), {x});
}

}  // namespace lockstep::ops
