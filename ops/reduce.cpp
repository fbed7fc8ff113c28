// Reductions over the last dimension: sum, mean, and where the maximum is.
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

// The shape of x with 1 for the last extent.
Shape reduced(const Shape& x) {
  switch (x.rank()) {
    case 1:
      return {1};
    case 2:
      return {x[0], 1};
    case 3:
      return {x[0], x[1], 1};
    default:
      return {x[0], x[1], x[2], 1};
  }
}

class Sum final : public RowOp {
 public:
  Sum(std::string_view name, const quant::RowKernels& kernels, const Shape& x, bool mean)
      : RowOp(x.rows()),
        name_(name),
        kernels_(kernels),
        divisor_(mean ? static_cast<float>(x.columns()) : 1.0f) {}

  std::string_view name() const noexcept override { return name_; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    return {DType::f32, reduced(inputs[0].shape)};
  }
  void run(const Io& io) const noexcept override {
    const Tensor& x = io.inputs[0];
    const Slice mine = region(io, x.rows(), 1).rows;
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      *io.output.row<float>(i) = kernels_.sum(x.row<const float>(i), x.columns()) / divisor_;
    }
  }

 private:
  std::string_view name_;
  const quant::RowKernels& kernels_;
  float divisor_;
};

class Argmax final : public Op {
 public:
  explicit Argmax(std::size_t rows) : rows_(rows) {}

  std::string_view name() const noexcept override { return "argmax"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    return {DType::i32, {rows_}};
  }
  // The output is one row of `rows_` columns: a worker has those that stand for its rows of x.
  Reach reach(std::size_t) const override { return Reach::all; }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(rows_, 1);
  }
  bool accepts(const Partition& other) const override { return is_columns(other, rows_, 1); }
  bool replicable() const noexcept override { return true; }
  void run(const Io& io) const noexcept override {
    const Tensor& x = io.inputs[0];
    const Slice mine = region(io, 1, rows_).columns;
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const auto* const row = x.row<const float>(i);
      std::int32_t best = 0;
      for (std::size_t j = 1; j < x.columns(); ++j) {
        // A NaN in front gives way to any number.
        const bool better = row[j] > row[best] || (row[best] != row[best] && row[j] == row[j]);
        if (better) best = static_cast<std::int32_t>(j);
      }
      io.output.row<std::int32_t>(0)[i] = best;
    }
  }

 private:
  std::size_t rows_;
};

}  // namespace

Value sum(Graph& graph, Value x) {
  return graph.add(std::make_unique<Sum>("sum", graph.rows(), graph.type(x).shape, false), {x});
}
Value mean(Graph& graph, Value x) {
  return graph.add(std::make_unique<Sum>("mean", graph.rows(), graph.type(x).shape, true), {x});
}
Value argmax(Graph& graph, Value x) {
  return graph.add(std::make_unique<Argmax>(graph.type(x).shape.rows()), {x});
}

}  // namespace lockstep::ops
