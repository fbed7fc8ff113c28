// Ops where each output element depends on one element of each input. They follow their producer:
// any division into rows or columns will do, so they never cost a barrier of their own.
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

// What all of them declare.
class Elementwise : public Op {
 public:
  Elementwise(std::string_view name, const Shape& shape)
      : name_(name), rows_(shape.rows()), columns_(shape.columns()) {}

  std::string_view name() const noexcept override { return name_; }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(rows_);
  }
  bool accepts(const Partition& other) const override {
    return is_rows(other, rows_) || is_columns(other, columns_, 1);
  }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t) const override { return Reach::own; }

 private:
  std::string_view name_;
  std::size_t rows_;
  std::size_t columns_;
};

class Unary final : public Elementwise {
 public:
  using Kernel = void (*)(const float* x, float* y, std::size_t n) noexcept;
  Unary(std::string_view name, Kernel kernel, const Shape& shape)
      : Elementwise(name, shape), kernel_(kernel) {}

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    return inputs[0];
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernel_(io.inputs[0].row<const float>(i) + first, io.output.row<float>(i) + first,
              mine.columns.size());
    }
  }

 private:
  Kernel kernel_;
};

class Scale final : public Elementwise {
 public:
  Scale(const quant::RowKernels& kernels, float factor, const Shape& shape)
      : Elementwise("scale", shape), kernels_(kernels), factor_(factor) {}

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    return inputs[0];
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernels_.scale(factor_, io.inputs[0].row<const float>(i) + first,
                     io.output.row<float>(i) + first, mine.columns.size());
    }
  }

 private:
  const quant::RowKernels& kernels_;
  float factor_;
};

class Binary final : public Elementwise {
 public:
  using Kernel = void (*)(const float* x, const float* y, float* z, std::size_t n) noexcept;
  // With `broadcast`, y is one row that meets every row of x.
  Binary(std::string_view name, Kernel kernel, const Shape& shape, bool broadcast)
      : Elementwise(name, shape), kernel_(kernel), broadcast_(broadcast) {}

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows(name(), "x", x, DType::f32);
    const Shape expected = broadcast_ ? Shape{x.shape.columns()} : x.shape;
    expect_type(name(), "y", inputs[1], {DType::f32, expected});
    return x;
  }
  Reach reach(std::size_t input) const override {
    return input == 1 && broadcast_ ? Reach::all : Reach::own;
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernel_(io.inputs[0].row<const float>(i) + first,
              io.inputs[1].row<const float>(broadcast_ ? 0 : i) + first,
              io.output.row<float>(i) + first, mine.columns.size());
    }
  }

 private:
  Kernel kernel_;
  bool broadcast_;
};

Value add_unary(Graph& graph, std::string_view name, Unary::Kernel kernel, Value x) {
  return graph.add(std::make_unique<Unary>(name, kernel, graph.type(x).shape), {x});
}

Value add_binary(Graph& graph, std::string_view name, Binary::Kernel kernel, Value x, Value y) {
  const Shape& shape = graph.type(x).shape;
  const bool broadcast = shape.rank() > 1 && graph.type(y).shape.rank() == 1;
  return graph.add(std::make_unique<Binary>(name, kernel, shape, broadcast), {x, y});
}

}  // namespace

Value add(Graph& graph, Value x, Value y) {
  return add_binary(graph, "add", graph.rows().add, x, y);
}
Value mul(Graph& graph, Value x, Value y) {
  return add_binary(graph, "mul", graph.rows().mul, x, y);
}
Value scale(Graph& graph, Value x, float factor) {
  return graph.add(std::make_unique<Scale>(graph.rows(), factor, graph.type(x).shape), {x});
}
Value silu(Graph& graph, Value x) { return add_unary(graph, "silu", graph.rows().silu, x); }
Value gelu(Graph& graph, Value x) { return add_unary(graph, "gelu", graph.rows().gelu, x); }

Value swiglu(Graph& graph, Value gate, Value up) {
  const Shape& shape = graph.type(gate).shape;
  return graph.add(std::make_unique<Binary>("swiglu", graph.rows().swiglu, shape, false),
                   {gate, up});
}

}  // namespace lockstep::ops
