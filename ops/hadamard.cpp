// The product with a Hadamard matrix as a fast Walsh-Hadamard transform: k log k additions per row
// in place of k^2 multiplications, and no weights to read.
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

class Hadamard final : public Op {
 public:
  Hadamard(const quant::RowKernels& kernels, const Shape& x, std::size_t block)
      : kernels_(kernels),
        rows_(x.rows()),
        columns_(x.columns()),
        block_(block),
        factor_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)))) {}

  std::string_view name() const noexcept override { return "hadamard"; }
  std::string detail() const override { return "blocks of " + std::to_string(block_); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("hadamard", "x", x, DType::f32);
    if (!std::has_single_bit(block_) || x.shape.columns() % block_ != 0) {
      shape_error("hadamard", "x", x,
                  "columns in whole blocks of " + std::to_string(block_) + ", a power of two");
    }
    return x;
  }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(rows_);
  }
  // Blocks are independent of each other.
  bool accepts(const Partition& other) const override {
    return is_rows(other, rows_) || is_columns(other, columns_, block_);
  }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t) const override { return Reach::own; }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto* const x = io.inputs[0].row<const float>(i);
      auto* const y = io.output.row<float>(i);
      for (std::size_t at = mine.columns.begin; at < mine.columns.end; at += block_) {
        std::memcpy(y + at, x + at, block_ * sizeof(float));
        kernels_.hadamard(factor_, y + at, block_);
      }
    }
  }

 private:
  const quant::RowKernels& kernels_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t block_;
  float factor_;
};

}  // namespace

Value hadamard(Graph& graph, Value x, std::size_t block) {
  return graph.add(std::make_unique<Hadamard>(graph.rows(), graph.type(x).shape, block), {x});
}

}  // namespace lockstep::ops
