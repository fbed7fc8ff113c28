// sum, mean and argmax over the last dimension.
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
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
}  // namespace

TEST_CASE("sum and mean match float64", "[reduce]") {
  for (const std::size_t columns : {1, 15, 16, 17, 300}) {
    CAPTURE(columns);
    Random random(41);
    const auto x = random.values(6 * columns, 3.0f);
    for (const bool mean : {false, true}) {
      const auto y = run_every_way<float>([&](TestGraph& test) {
        const Value in = test.external({DType::f32, {2, 3, columns}}, x);
        const Value out = mean ? ops::mean(test.graph, in) : ops::sum(test.graph, in);
        CHECK(test.graph.type(out) == ops::TensorType{DType::f32, {2, 3, 1}});
        return out;
      });
      REQUIRE(y.size() == 6);
      for (std::size_t i = 0; i < 6; ++i) {
        double expected = 0.0;
        for (std::size_t j = 0; j < columns; ++j) expected += x[i * columns + j];
        if (mean) expected /= static_cast<double>(columns);
        CHECK(std::abs(y[i] - expected) < 1e-4);
      }
    }
  }
}

TEST_CASE("a sum can be broadcast over the row it came from", "[reduce]") {
  const auto y = run_every_way<float>([](TestGraph& test) {
    const Value x = test.input<float>({DType::f32, {2, 2}}, {1, 2, 3, 4});
    return ops::mul(test.graph, x, ops::sum(test.graph, x));
  });
  CHECK(y == std::vector<float>{3, 6, 21, 28});
}

TEST_CASE("argmax takes the first of equals and the least of a NaN", "[reduce]") {
  const std::vector<float> x{1,     5,     5,     2,      //
                             -3,    -2,    -2,    -9,     //
                             kNan,  1,     kNan,  0,      //
                             kNan,  kNan,  kNan,  kNan,   //
                             -kInf, -kInf, -kInf, -kInf,  //
                             0,     kInf,  kNan,  kInf};
  const auto y = run_every_way<std::int32_t>([&](TestGraph& test) {
    return ops::argmax(test.graph, test.input({DType::f32, {6, 4}}, x));
  });
  CHECK(y == std::vector<std::int32_t>{1, 1, 1, 0, 0, 1});
}

TEST_CASE("reductions want rows of f32", "[reduce]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value ids = graph.input("ids", {DType::i32, {2, 5}});
  const Value empty = graph.input("empty", {DType::f32, {2, 0}});
  check_shape_error([&] { ops::sum(graph, ids); }, {"sum", "i32 [2, 5]"});
  check_shape_error([&] { ops::mean(graph, empty); }, {"mean", "[2, 0]"});
  check_shape_error([&] { ops::argmax(graph, ids); }, {"argmax", "i32 [2, 5]"});
}
