// Routing tokens to experts: the best columns of a row, their values, and the weighted sum of what
// the chosen experts made.
#include <algorithm>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

// Whether a ranks before b: NaN is the least of all.
bool before(float a, float b) noexcept { return a > b || (a == a && b != b); }

class TopK final : public RowOp {
 public:
  TopK(std::size_t rows, std::size_t count) : RowOp(rows), count_(count) {}

  std::string_view name() const noexcept override { return "top_k"; }
  std::string detail() const override { return std::to_string(count_); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_matrix("top_k", "x", x, DType::f32);
    if (count_ == 0 || count_ > x.shape.columns()) {
      shape_error("top_k", "x", x, "at least " + std::to_string(count_) + " columns, and 1 wanted");
    }
    return {DType::i32, {rows(), count_}};
  }

  // Insertion into a short sorted list: few are wanted, and equal ones keep their order.
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto* const x = io.inputs[0].row<const float>(i);
      auto* const best = io.output.row<std::int32_t>(i);
      std::size_t held = 0;
      for (std::size_t j = 0; j < io.inputs[0].columns(); ++j) {
        if (held == count_ && !before(x[j], x[best[held - 1]])) continue;
        std::size_t at = held < count_ ? held++ : held - 1;
        for (; at > 0 && before(x[j], x[best[at - 1]]); --at) best[at] = best[at - 1];
        best[at] = static_cast<std::int32_t>(j);
      }
    }
  }

 private:
  std::size_t count_;
};

class GatherColumns final : public RowOp {
 public:
  explicit GatherColumns(std::size_t rows) : RowOp(rows) {}

  std::string_view name() const noexcept override { return "gather_columns"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_matrix("gather_columns", "x", inputs[0], DType::f32);
    expect_matrix("gather_columns", "ids", inputs[1], DType::i32);
    const Shape& ids = inputs[1].shape;
    expect_type("gather_columns", "ids", inputs[1],
                {DType::i32, {inputs[0].shape[0], ids.columns()}});
    return {DType::f32, ids};
  }
  Reach reach(std::size_t) const override { return Reach::own; }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto* const x = io.inputs[0].row<const float>(i);
      const auto* const ids = io.inputs[1].row<const std::int32_t>(i);
      for (std::size_t j = 0; j < io.output.columns(); ++j) io.output.row<float>(i)[j] = x[ids[j]];
    }
  }
};

class WeightedSum final : public Op {
 public:
  WeightedSum(const quant::RowKernels& kernels, std::size_t columns)
      : kernels_(kernels), columns_(columns) {}

  std::string_view name() const noexcept override { return "weighted_sum"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    if (x.dtype != DType::f32 || x.shape.rank() != 3 || x.shape.columns() == 0) {
      shape_error("weighted_sum", "x", x, "f32 [tokens, parts, columns >= 1]");
    }
    expect_type("weighted_sum", "weights", inputs[1], {DType::f32, {x.shape[0], x.shape[1]}});
    return {DType::f32, {x.shape[0], x.shape[2]}};
  }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(columns_, 1);
  }
  bool accepts(const Partition& other) const override { return is_columns(other, columns_, 1); }
  Reach reach(std::size_t input) const override { return input == 0 ? Reach::own : Reach::all; }

  void run(const Io& io) const noexcept override {
    const Slice mine = io.part;
    const std::size_t parts = io.inputs[0].type.shape[1];
    for (std::size_t i = 0; i < io.output.rows(); ++i) {
      const auto* const weights = io.inputs[1].row<const float>(i);
      float* const y = io.output.row<float>(i) + mine.begin;
      std::fill(y, y + mine.size(), 0.0f);
      for (std::size_t j = 0; j < parts; ++j) {
        const auto* const x = io.inputs[0].row<const float>(i * parts + j) + mine.begin;
        kernels_.axpy_f32(weights[j], x, y, mine.size());
      }
    }
  }

 private:
  const quant::RowKernels& kernels_;
  std::size_t columns_;
};

}  // namespace

Value top_k(Graph& graph, Value x, std::size_t count) {
  return graph.add(std::make_unique<TopK>(graph.type(x).shape.rows(), count), {x});
}

Value gather_columns(Graph& graph, Value x, Value ids) {
  return graph.add(std::make_unique<GatherColumns>(graph.type(ids).shape.rows()), {x, ids});
}

Value weighted_sum(Graph& graph, Value x, Value weights) {
  return graph.add(std::make_unique<WeightedSum>(graph.rows(), graph.type(x).shape.columns()),
                   {x, weights});
}

}  // namespace lockstep::ops
