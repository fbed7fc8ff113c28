// The product with a Hadamard matrix as a fast Walsh-Hadamard transform: k log k additions per row
// in place of k^2 multiplications, and no weights to read.
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

class Hadamard final : public BlockOp {
 public:
  Hadamard(const quant::RowKernels& kernels, const Shape& x, std::size_t block)
      : BlockOp(x, block),
        kernels_(kernels),
        factor_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)))) {}

  std::string_view name() const noexcept override { return "hadamard"; }
  std::string detail() const override { return "blocks of " + std::to_string(block()); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("hadamard", "x", x, DType::f32);
    if (!std::has_single_bit(block()) || x.shape.columns() % block() != 0) {
      shape_error("hadamard", "x", x,
                  "columns in whole blocks of " + std::to_string(block()) + ", a power of two");
    }
    return x;
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto* const x = io.inputs[0].row<const float>(i);
      auto* const y = io.output.row<float>(i);
      for (std::size_t at = mine.columns.begin; at < mine.columns.end; at += block()) {
        std::memcpy(y + at, x + at, block() * sizeof(float));
        kernels_.hadamard(factor_, y + at, block());
      }
    }
  }

 private:
  const quant::RowKernels& kernels_;
  float factor_;
};

}  // namespace

Value hadamard(Graph& graph, Value x, std::size_t block) {
  return graph.add(std::make_unique<Hadamard>(graph.rows(), graph.type(x).shape, block), {x});
}

}  // namespace lockstep::ops
