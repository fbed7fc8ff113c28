// hadamard, and the hint on matmul that runs it.
#include <bit>
#include <cmath>

#include "support/graph_runner.h"
#include "support/packed_matrix.h"
#include "support/random.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;

namespace {

double entry(std::size_t i, std::size_t j, std::size_t block) {
  const double sign = std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0;
  return sign / std::sqrt(static_cast<double>(block));
}

}  // namespace

TEST_CASE("hadamard matches the product with its matrix in float64", "[hadamard]") {
  for (const std::size_t block : {1, 2, 4, 8, 16, 32, 64, 256}) {
    for (const std::size_t blocks : {1, 3}) {
      CAPTURE(block, blocks);
      Random random(51);
      const std::size_t columns = block * blocks;
      const auto x = random.values(3 * columns, 2.0f);
      const auto y = run_every_way<float>([&](TestGraph& test) {
        return ops::hadamard(test.graph, test.external({DType::f32, {3, columns}}, x), block);
      });
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t first = i / block * block;
        double expected = 0.0;
        for (std::size_t j = 0; j < block; ++j) {
          expected += entry(i - first, j, block) * x[first + j];
        }
        CHECK(std::abs(y[i] - expected) < 2e-6 * static_cast<double>(std::bit_width(block)));
      }
    }
  }
}

TEST_CASE("a matmul with the hint is the matmul with the matrix, without reading it",
          "[hadamard]") {
  constexpr std::size_t kSize = 128;
  std::vector<float> weights(kSize * kSize);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(entry(i / kSize, i % kSize, kSize));
  }
  Random random(52);
  const auto x = random.values(5 * kSize);
  const auto product = [&](ops::MatmulHint hint) {
    const quant::MatmulKernel* kernel = ops::find_kernel(quant::Format::f32, quant::Isa::scalar);
    const Packed packed = pack(*kernel, to_bytes(weights), kSize, kSize, 2);
    TestGraph test(quant::Isa::scalar);
    const Value in = test.input({DType::f32, {5, kSize}}, x);
    const Value out = ops::matmul(test.graph, in, packed.matrix, hint);
    const ops::Op& op = *test.graph.nodes().back().op;
    CHECK((op.weight_bytes() == 0) == (hint == ops::MatmulHint::hadamard));
    return from_bytes<float>(GraphRun(test, 2, 0).read(out));
  };
  const auto dense = product(ops::MatmulHint::none);
  const auto fast = product(ops::MatmulHint::hadamard);
  REQUIRE(dense.size() == fast.size());
  for (std::size_t i = 0; i < fast.size(); ++i) CHECK(std::abs(fast[i] - dense[i]) < 1e-6);
}

TEST_CASE("hadamard twice is the identity", "[hadamard]") {
  Random random(53);
  const auto x = random.values(2 * 64);
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const Value once = ops::hadamard(test.graph, test.input({DType::f32, {2, 64}}, x), 64);
    return ops::hadamard(test.graph, once, 64);
  });
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(y[i] - x[i]) < 1e-6f);
}

TEST_CASE("hadamard wants whole blocks of a power of two", "[hadamard]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {2, 48}});
  check_shape_error([&] { ops::hadamard(graph, x, 32); }, {"hadamard", "[2, 48]", "32"});
  check_shape_error([&] { ops::hadamard(graph, x, 24); }, {"hadamard", "24", "power of two"});
  check_shape_error([&] { ops::hadamard(graph, x, 0); }, {"hadamard", "power of two"});
  const quant::MatmulKernel* kernel = ops::find_kernel(quant::Format::f32, quant::Isa::scalar);
  const Packed packed = pack(*kernel, to_bytes(std::vector<float>(48 * 32)), 32, 48, 1);
  check_shape_error([&] { ops::matmul(graph, x, packed.matrix, ops::MatmulHint::hadamard); },
                    {"matmul", "[32, 48]", "not square"});
}
