// column_squares: sums over tokens, the same for any division of the columns.
#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "support/graph_runner.h"
#include "support/random.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;

TEST_CASE("column_squares adds the squares of each column in order") {
  Random random(17);
  for (const std::size_t columns : {1, 15, 16, 64, 65, 200}) {
    for (const std::size_t tokens : {1, 7}) {
      CAPTURE(columns, tokens);
      std::vector<float> x = random.values(tokens * columns, 3.0f);
      x[0] = 1e20f;  // its square is beyond f32
      const auto y = run_every_way<float>([&](TestGraph& test) {
        return ops::column_squares(test.graph, test.input({DType::f32, {tokens, columns}}, x));
      });
      REQUIRE(y.size() == columns);
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < tokens; ++i) {
          sum += static_cast<double>(x[i * columns + j]) * x[i * columns + j];
        }
        CHECK(y[j] == static_cast<float>(sum));
      }
      CHECK(std::isinf(y[0]));
    }
  }
}

TEST_CASE("column_squares wants a matrix of f32") {
  ops::Graph graph(quant::Isa::scalar);
  const ops::Value vector = graph.input("vector", {DType::f32, {5}});
  const ops::Value ids = graph.input("ids", {DType::i32, {2, 5}});
  check_shape_error([&] { ops::column_squares(graph, vector); }, {"column_squares", "[5]"});
  check_shape_error([&] { ops::column_squares(graph, ids); }, {"column_squares", "i32 [2, 5]"});
}
