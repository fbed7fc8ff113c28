// embed, gather_rows, cast: moving rows.
#include <cmath>
#include <limits>

#include "quant/half.h"
#include "support/graph_runner.h"
#include "support/random.h"
#include "support/random_rows.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;

TEST_CASE("embed decodes the rows it is asked for, in every format", "[rows]") {
  std::size_t decoded = 0;
  for (const quant::FormatTraits& format : quant::all_formats()) {
    if (!format.can_decode()) continue;
    ++decoded;
    for (const std::size_t blocks : {1, 3}) {
      const std::size_t columns = blocks * format.block_values;
      CAPTURE(format.name, columns);
      Random random(4);
      const auto table = random_rows(format, 6, columns, random);
      const std::vector<std::int32_t> ids{5, 0, 3, 3, 1};
      const auto y = run_every_way<float>([&](TestGraph& test) {
        const ops::RowTable rows{format.format, 6, columns, table.data(), side_data(format)};
        return ops::embed(test.graph, rows, test.input({DType::i32, {5}}, ids));
      });
      std::vector<float> all(6 * columns);
      quant::decode_values(format, side_data(format), table.data(), all.data(), all.size());
      REQUIRE(y.size() == 5 * columns);
      for (std::size_t i = 0; i < 5; ++i) {
        const float* row = all.data() + static_cast<std::size_t>(ids[i]) * columns;
        CHECK(std::memcmp(&y[i * columns], row, columns * sizeof(float)) == 0);
      }
    }
  }
  CHECK(decoded >= 3);
}

TEST_CASE("embed refuses tables that it cannot read", "[rows]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value ids = graph.input("ids", {DType::i32, {2}});
  const Value square = graph.input("square", {DType::i32, {2, 2}});
  const ops::RowTable table{quant::Format::f32, 4, 8, nullptr};
  check_shape_error([&] { ops::embed(graph, table, square); }, {"embed", "ids", "i32 [2, 2]"});
  check_shape_error(
      [&] {
        ops::embed(graph, {quant::Format::q8_0, 4, 33, nullptr}, ids);
      },
      {"embed", "Q8_0", "[4, 33]", "32"});
  check_shape_error(
      [&] {
        ops::embed(graph, {quant::Format::i64, 4, 32, nullptr}, ids);
      },
      {"embed", "I64", "[4, 32]"});
  check_shape_error(
      [&] {
        ops::embed(graph, {quant::Format::q4x, 4, 256, nullptr}, ids);
      },
      {"embed", "Q4X", "[4, 256]", "side data"});
}

TEST_CASE("gather_rows picks rows in the order given", "[rows]") {
  for (const std::size_t columns : {1, 16, 33}) {
    Random random(5);
    const auto x = random.values(4 * columns);
    const std::vector<std::int32_t> picked{3, 3, 0, 2, 1};
    const auto y = run_every_way<float>([&](TestGraph& test) {
      const Value in = test.input({DType::f32, {4, columns}}, x);
      return ops::gather_rows(test.graph, in, test.input({DType::i32, {5}}, picked));
    });
    REQUIRE(y.size() == 5 * columns);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        CHECK(y[i * columns + j] == x[static_cast<std::size_t>(picked[i]) * columns + j]);
      }
    }
  }
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {4, 2}});
  check_shape_error([&] { ops::gather_rows(graph, x, x); }, {"gather_rows", "rows", "f32 [4, 2]"});
}

TEST_CASE("cast to f16 rounds, and back is exact", "[rows]") {
  for (const std::size_t columns : {1, 7, 16, 33}) {
    Random random(6);
    auto x = random.values(3 * columns, 1000.0f);
    x[0] = 1e6f;       // overflows
    x.back() = 1e-7f;  // a subnormal half
    const auto half = run_every_way<std::uint16_t>([&](TestGraph& test) {
      return ops::cast(test.graph, test.input({DType::f32, {3, columns}}, x), DType::f16);
    });
    REQUIRE(half.size() == x.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(half[i] == quant::f32_to_f16(x[i]));
    const auto back = run_every_way<float>([&](TestGraph& test) {
      return ops::cast(test.graph, test.input({DType::f16, {3, columns}}, half), DType::f32);
    });
    REQUIRE(back.size() == x.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(back[i] == quant::f16_to_f32(half[i]));
  }
}

TEST_CASE("cast to the same type copies", "[rows]") {
  const std::vector<std::int32_t> ids{1, -2, 3, 4, 5, 6};
  const auto y = run_every_way<std::int32_t>([&](TestGraph& test) {
    return ops::cast(test.graph, test.input({DType::i32, {2, 3}}, ids), DType::i32);
  });
  CHECK(y == ids);
  const std::vector<std::uint16_t> halves{1, 2, 0x7e01, 0xffff, 5, 6};
  const auto z = run_every_way<std::uint16_t>([&](TestGraph& test) {
    return ops::cast(test.graph, test.input({DType::f16, {2, 3}}, halves), DType::f16);
  });
  CHECK(z == halves);
  ops::Graph graph(quant::Isa::scalar);
  const Value i = graph.input("i", {DType::i32, {2, 3}});
  const Value q = graph.input("q", {DType::act_q8_0, {2, 32}});
  check_shape_error([&] { ops::cast(graph, i, DType::f32); }, {"cast", "i32 [2, 3]", "f32"});
  check_shape_error([&] { ops::cast(graph, q, DType::f32); }, {"cast", "act_q8_0 [2, 32]"});
}
