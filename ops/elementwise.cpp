// Ops where each output element depends on one element of each input. They follow their producer:
// any division into rows or columns will do, so they never cost a barrier of their own.
#include <array>
#include <memory>
#include <string>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

// What all of them declare.
class Elementwise : public BlockOp {
 public:
  Elementwise(std::string_view name, const Shape& shape) : BlockOp(shape, 1), name_(name) {}

  std::string_view name() const noexcept override { return name_; }

 private:
  std::string_view name_;
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

// A unary function with one number that is the same for all elements.
class UnaryWith final : public Elementwise {
 public:
  using Kernel = void (*)(float a, const float* x, float* y, std::size_t n) noexcept;
  UnaryWith(std::string_view name, Kernel kernel, float a, const Shape& shape)
      : Elementwise(name, shape), kernel_(kernel), a_(a) {}

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    return inputs[0];
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernel_(a_, io.inputs[0].row<const float>(i) + first, io.output.row<float>(i) + first,
              mine.columns.size());
    }
  }

 private:
  Kernel kernel_;
  float a_;
};

class Binary final : public Elementwise {
 public:
  using Kernel = void (*)(const float* x, const float* y, float* z, std::size_t n) noexcept;
  Binary(std::string_view name, Kernel kernel, const Shape& shape)
      : Elementwise(name, shape), kernel_(kernel) {}

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows(name(), "x", inputs[0], DType::f32);
    expect_type(name(), "y", inputs[1], inputs[0]);
    return inputs[0];
  }
  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernel_(io.inputs[0].row<const float>(i) + first, io.inputs[1].row<const float>(i) + first,
              io.output.row<float>(i) + first, mine.columns.size());
    }
  }

 private:
  Kernel kernel_;
};

// y may have fewer dimensions than x, or 1 where x has more: it is repeated there.
class Broadcast final : public Elementwise {
 public:
  // `along` for rows of y as wide as those of x, `with` for rows of one value.
  Broadcast(std::string_view name, Binary::Kernel along, UnaryWith::Kernel with, const Shape& x,
            const Shape& y)
      : Elementwise(name, x), along_(along), with_(with), x_(x) {
    std::size_t stride = 1;  // rows of y, from the fastest dimension to the slowest
    for (std::size_t i = 1; i < y.rank() && i < x.rank(); ++i) {
      const std::size_t extent = y[y.rank() - 1 - i];
      strides_[x.rank() - 1 - i] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const TensorType& y = inputs[1];
    expect_rows(name(), "x", x, DType::f32);
    bool fits = y.dtype == DType::f32 && y.shape.rank() >= 1 && y.shape.rank() <= x.shape.rank();
    for (std::size_t i = 1; fits && i <= y.shape.rank(); ++i) {
      const std::size_t extent = y.shape[y.shape.rank() - i];
      fits = extent == 1 || extent == x.shape[x.shape.rank() - i];
    }
    if (!fits) {
      shape_error(name(), "y", y,
                  to_string(x) + " or, from the last dimension on, 1 in place of an extent");
    }
    return x;
  }
  Reach reach(std::size_t input) const override { return input == 1 ? Reach::all : Reach::own; }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    const bool one = io.inputs[1].columns() == 1 && io.output.columns() != 1;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const float* const x = io.inputs[0].row<const float>(i) + first;
      const float* const y = io.inputs[1].row<const float>(row_of_y(i));
      float* const z = io.output.row<float>(i) + first;
      if (one) {
        with_(*y, x, z, mine.columns.size());
      } else {
        along_(x, y + first, z, mine.columns.size());
      }
    }
  }

 private:
  std::size_t row_of_y(std::size_t row) const noexcept {
    std::size_t found = 0;
    for (std::size_t i = x_.rank() - 1; i-- > 0; row /= x_[i]) found += row % x_[i] * strides_[i];
    return found;
  }

  Binary::Kernel along_;
  UnaryWith::Kernel with_;
  Shape x_;
  std::array<std::size_t, Shape::kMaxRank> strides_{};  // rows of y for a step in a dimension of x
};

Value add_unary(Graph& graph, std::string_view name, Unary::Kernel kernel, Value x) {
  return graph.add(std::make_unique<Unary>(name, kernel, graph.type(x).shape), {x});
}

Value add_unary(Graph& graph, std::string_view name, UnaryWith::Kernel kernel, float a, Value x) {
  return graph.add(std::make_unique<UnaryWith>(name, kernel, a, graph.type(x).shape), {x});
}

Value add_binary(Graph& graph, std::string_view name, Binary::Kernel kernel, Value x, Value y) {
  return graph.add(std::make_unique<Binary>(name, kernel, graph.type(x).shape), {x, y});
}

Value add_binary(Graph& graph, std::string_view name, Binary::Kernel along, UnaryWith::Kernel with,
                 Value x, Value y) {
  const Shape& shape = graph.type(x).shape;
  const Shape& other = graph.type(y).shape;
  if (shape == other) return add_binary(graph, name, along, x, y);
  return graph.add(std::make_unique<Broadcast>(name, along, with, shape, other), {x, y});
}

}  // namespace

Value add(Graph& graph, Value x, Value y) {
  return add_binary(graph, "add", graph.rows().add, graph.rows().shift, x, y);
}
Value mul(Graph& graph, Value x, Value y) {
  return add_binary(graph, "mul", graph.rows().mul, graph.rows().scale, x, y);
}
Value scale(Graph& graph, Value x, float factor) {
  return add_unary(graph, "scale", graph.rows().scale, factor, x);
}
Value soft_cap(Graph& graph, Value x, float cap) {
  if (!(cap > 0.0f)) {
    throw ShapeError("soft_cap: the cap is " + std::to_string(cap) + ", expected more than 0");
  }
  return add_unary(graph, "soft_cap", graph.rows().soft_cap, cap, x);
}

Value exp(Graph& graph, Value x) { return add_unary(graph, "exp", graph.rows().exp, x); }
Value relu(Graph& graph, Value x) { return add_unary(graph, "relu", graph.rows().relu, x); }
Value sigmoid(Graph& graph, Value x) {
  return add_unary(graph, "sigmoid", graph.rows().sigmoid, x);
}
Value tanh(Graph& graph, Value x) { return add_unary(graph, "tanh", graph.rows().tanh, x); }
Value silu(Graph& graph, Value x) { return add_unary(graph, "silu", graph.rows().silu, x); }
Value gelu(Graph& graph, Value x) { return add_unary(graph, "gelu", graph.rows().gelu, x); }

Value swiglu(Graph& graph, Value gate, Value up) {
  return add_binary(graph, "swiglu", graph.rows().swiglu, gate, up);
}
Value geglu(Graph& graph, Value gate, Value up) {
  return add_binary(graph, "geglu", graph.rows().geglu, gate, up);
}

}  // namespace lockstep::ops
