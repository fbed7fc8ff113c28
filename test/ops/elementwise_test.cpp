// Elementwise ops against float64, under every division.
#include <cmath>
#include <limits>

#include "support/graph_runner.h"
#include "support/random.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

struct Size {
  std::size_t rows, columns;
};
const Size kSizes[] = {{1, 1}, {1, 15}, {2, 16}, {3, 17}, {5, 33}, {7, 129}};

using Binary = Value (*)(ops::Graph&, Value, Value);
using Unary = Value (*)(ops::Graph&, Value);

void check_close(float found, double expected) {
  CHECK(std::abs(static_cast<double>(found) - expected) <= 1e-6 * (std::abs(expected) + 1.0));
}

void check_binary(Binary op, double (*reference)(double, double), bool broadcast) {
  for (const Size& size : kSizes) {
    CAPTURE(size.rows, size.columns, broadcast);
    Random random(7);
    const auto x = random.values(size.rows * size.columns, 6.0f);
    const auto y = random.values((broadcast ? 1 : size.rows) * size.columns, 6.0f);
    const auto z = run_every_way<float>([&](TestGraph& test) {
      const Value first = test.input({DType::f32, {size.rows, size.columns}}, x);
      const ops::Shape shape =
          broadcast ? ops::Shape{size.columns} : ops::Shape{size.rows, size.columns};
      return op(test.graph, first, test.input({DType::f32, shape}, y));
    });
    REQUIRE(z.size() == x.size());
    for (std::size_t i = 0; i < z.size(); ++i) check_close(z[i], reference(x[i], y[i % y.size()]));
  }
}

void check_unary(Unary op, double (*reference)(double)) {
  for (const Size& size : kSizes) {
    CAPTURE(size.rows, size.columns);
    Random random(8);
    const auto x = random.values(size.rows * size.columns, 8.0f);
    const auto y = run_every_way<float>([&](TestGraph& test) {
      return op(test.graph, test.input({DType::f32, {size.rows, size.columns}}, x));
    });
    REQUIRE(y.size() == x.size());
    for (std::size_t i = 0; i < y.size(); ++i) check_close(y[i], reference(x[i]));
  }
}

}  // namespace

TEST_CASE("add and mul, with and without broadcast", "[elementwise]") {
  for (const bool broadcast : {false, true}) {
    check_binary(
        ops::add, [](double x, double y) { return x + y; }, broadcast);
    check_binary(
        ops::mul, [](double x, double y) { return x * y; }, broadcast);
  }
}

TEST_CASE("gated units are an activation of the gate times the other", "[elementwise]") {
  check_binary(
      ops::swiglu, [](double gate, double up) { return gate * sigmoid(gate) * up; }, false);
  check_binary(
      ops::geglu, [](double gate, double up) { return gelu_tanh(gate) * up; }, false);
}

TEST_CASE("functions of one value", "[elementwise]") {
  check_unary(ops::exp, [](double x) { return std::exp(x); });
  check_unary(ops::relu, [](double x) { return x > 0.0 ? x : 0.0; });
  check_unary(ops::sigmoid, sigmoid);
  check_unary(ops::tanh, [](double x) { return std::tanh(x); });
  check_unary([](ops::Graph& graph, Value x) { return ops::soft_cap(graph, x, 2.5f); },
              [](double x) { return 2.5 * std::tanh(x / 2.5); });
  check_unary(ops::silu, [](double x) { return x * sigmoid(x); });
  check_unary(ops::gelu, gelu_tanh);
  check_unary([](ops::Graph& graph, Value x) { return ops::scale(graph, x, -0.75f); },
              [](double x) { return -0.75 * x; });
}

TEST_CASE("vectors and deeper tensors work row by row", "[elementwise]") {
  const auto y = run_every_way<float>([](TestGraph& test) {
    const Value x = test.input<float>({DType::f32, {3}}, {1, 2, 3});
    return ops::add(test.graph, x, x);
  });
  CHECK(y == std::vector<float>{2, 4, 6});
  const auto z = run_every_way<float>([](TestGraph& test) {
    const Value x = test.input<float>({DType::f32, {2, 1, 2}}, {1, 2, 3, 4});
    return ops::mul(test.graph, x, test.input<float>({DType::f32, {2}}, {10, 100}));
  });
  CHECK(z == std::vector<float>{10, 200, 30, 400});
}

TEST_CASE("add and mul repeat y where it is one wide", "[elementwise]") {
  const ops::Shape x_shape{2, 3, 4, 17};
  Random random(9);
  const auto x = random.values(x_shape.elements(), 3.0f);
  for (const ops::Shape& y_shape :
       {ops::Shape{17}, ops::Shape{1}, ops::Shape{4, 1}, ops::Shape{4, 17}, ops::Shape{3, 1, 17},
        ops::Shape{3, 1, 1}, ops::Shape{1, 4, 17}, ops::Shape{2, 1, 4, 1}, ops::Shape{2, 3, 4, 1},
        ops::Shape{2, 1, 1, 17}, ops::Shape{1, 1, 1, 1}}) {
    CAPTURE(ops::to_string(y_shape));
    const auto y = random.values(y_shape.elements(), 3.0f);
    for (const bool product : {false, true}) {
      const auto z = run_every_way<float>([&](TestGraph& test) {
        const Value first = test.input({DType::f32, x_shape}, x);
        // Strided memory, too: rows of an external value are padded.
        const Value second = test.external({DType::f32, y_shape}, y);
        return product ? ops::mul(test.graph, first, second) : ops::add(test.graph, first, second);
      });
      std::size_t i = 0;
      for (std::size_t a = 0; a < 2; ++a) {
        for (std::size_t b = 0; b < 3; ++b) {
          for (std::size_t c = 0; c < 4; ++c) {
            for (std::size_t d = 0; d < 17; ++d, ++i) {
              const std::size_t at[] = {a, b, c, d};
              std::size_t j = 0;
              for (std::size_t k = 0; k < y_shape.rank(); ++k) {
                const std::size_t where = at[4 - y_shape.rank() + k];
                j = j * y_shape[k] + (y_shape[k] == 1 ? 0 : where);
              }
              CHECK(z[i] == (product ? x[i] * y[j] : x[i] + y[j]));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("no tokens, no work", "[elementwise]") {
  const auto y = run_every_way<float>([](TestGraph& test) {
    return ops::silu(test.graph, test.input<float>({DType::f32, {0, 4}}, {}));
  });
  CHECK(y.empty());
}

TEST_CASE("a NaN stays in its element", "[elementwise]") {
  std::vector<float> x(40, 1.0f);
  x[21] = std::numeric_limits<float>::quiet_NaN();
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const Value value = test.input({DType::f32, {2, 20}}, x);
    ops::Graph& graph = test.graph;
    const Value gates = ops::geglu(graph, ops::relu(graph, value), ops::tanh(graph, value));
    const Value caps = ops::soft_cap(graph, ops::sigmoid(graph, ops::exp(graph, value)), 3.0f);
    return ops::swiglu(graph, ops::mul(graph, ops::gelu(graph, gates), caps),
                       ops::silu(graph, value));
  });
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i == 21));
}

TEST_CASE("elementwise ops say which operand has which extents", "[elementwise]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {3, 4}});
  const Value wide = graph.input("wide", {DType::f32, {3, 5}});
  const Value row = graph.input("row", {DType::f32, {5}});
  const Value ids = graph.input("ids", {DType::i32, {3, 4}});
  check_shape_error([&] { ops::add(graph, x, wide); }, {"add", "y", "[3, 5]", "[3, 4]"});
  check_shape_error([&] { ops::mul(graph, x, row); }, {"mul", "y", "[5]", "[3, 4]"});
  const Value deep = graph.input("deep", {DType::f32, {1, 3, 4}});
  check_shape_error([&] { ops::add(graph, x, deep); }, {"add", "y", "[1, 3, 4]", "[3, 4]"});
  check_shape_error([&] { ops::soft_cap(graph, x, 0.0f); }, {"soft_cap", "0.0", "more than 0"});
  check_shape_error([&] { ops::swiglu(graph, x, row); }, {"swiglu", "y", "[5]", "[3, 4]"});
  check_shape_error([&] { ops::silu(graph, ids); }, {"silu", "x", "i32 [3, 4]", "f32"});
  check_shape_error([&] { ops::scale(graph, ids, 2.0f); }, {"scale", "i32 [3, 4]"});
}

TEST_CASE("elementwise ops join any division of rows or columns", "[elementwise]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {3, 48}});
  ops::add(graph, x, graph.input("y", {DType::f32, {48}}));
  const ops::Op& op = *graph.nodes()[0].op;
  using Kind = ops::Partition::Kind;
  CHECK(op.accepts({Kind::columns, 48, 24}));
  CHECK(op.accepts({Kind::rows, 3, 1}));
  CHECK_FALSE(op.accepts({Kind::columns, 47, 1}));
  CHECK_FALSE(op.accepts({Kind::units, 48, 1}));
  CHECK(op.replicable());
  CHECK(op.reach(0) == ops::Reach::own);
  CHECK(op.reach(1) == ops::Reach::all);  // a broadcast row is read whole
}
