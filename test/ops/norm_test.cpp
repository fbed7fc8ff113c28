// rms_norm, layer_norm, softmax and quantize: the ops that need whole rows.
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

TEST_CASE("rms_norm matches float64", "[norm]") {
  for (const std::size_t columns : {1, 15, 16, 17, 64, 257}) {
    for (const std::size_t rows : {1, 3, 5}) {
      CAPTURE(rows, columns);
      Random random(1);
      const auto x = random.values(rows * columns, 3.0f);
      const auto weight = random.values(columns, 2.0f);
      const auto y = run_every_way<float>([&](TestGraph& test) {
        const Value in = test.input({DType::f32, {rows, columns}}, x);
        return ops::rms_norm(test.graph, in, test.external({DType::f32, {columns}}, weight), 1e-5f);
      });
      for (std::size_t i = 0; i < rows; ++i) {
        double squares = 0.0;
        for (std::size_t j = 0; j < columns; ++j) squares += std::pow(x[i * columns + j], 2.0);
        const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(columns) + 1e-5);
        for (std::size_t j = 0; j < columns; ++j) {
          const double expected = x[i * columns + j] * inverse * weight[j];
          CHECK(std::abs(y[i * columns + j] - expected) <= 1e-6 * (std::abs(expected) + 1e-3));
        }
      }
    }
  }
}

TEST_CASE("rms_norm of zeros is zeros, and a NaN stays in its row", "[norm]") {
  std::vector<float> x(3 * 20, 0.0f);
  x[25] = kNan;
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const Value weight = test.external({DType::f32, {20}}, std::vector<float>(20, 1.0f));
    return ops::rms_norm(test.graph, test.input({DType::f32, {3, 20}}, x), weight, 1e-6f);
  });
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i / 20 == 1) {
      CHECK(std::isnan(y[i]));
    } else {
      CHECK(y[i] == 0.0f);
    }
  }
}

TEST_CASE("layer_norm matches float64, with and without a bias", "[norm]") {
  for (const std::size_t columns : {1, 15, 16, 17, 64, 257}) {
    for (const bool with_bias : {false, true}) {
      CAPTURE(columns, with_bias);
      Random random(4);
      auto x = random.values(3 * columns, 3.0f);
      for (std::size_t j = 0; j < columns; ++j) x[j] += 1000.0f;  // a mean far from 0
      const auto weight = random.values(columns, 2.0f);
      const auto bias = random.values(columns, 2.0f);
      const auto y = run_every_way<float>([&](TestGraph& test) {
        const Value in = test.input({DType::f32, {3, columns}}, x);
        const Value scales = test.external({DType::f32, {columns}}, weight);
        const Value shifts = test.external({DType::f32, {columns}}, bias);
        return ops::layer_norm(test.graph, in, scales,
                               with_bias ? std::optional(shifts) : std::nullopt, 1e-5f);
      });
      for (std::size_t i = 0; i < 3; ++i) {
        const auto* const row = &x[i * columns];
        const auto n = static_cast<double>(columns);
        double mean = 0.0, variance = 0.0;
        for (std::size_t j = 0; j < columns; ++j) mean += row[j] / n;
        for (std::size_t j = 0; j < columns; ++j) variance += std::pow(row[j] - mean, 2.0) / n;
        for (std::size_t j = 0; j < columns; ++j) {
          const double expected = (row[j] - mean) / std::sqrt(variance + 1e-5) * weight[j] +
                                  (with_bias ? static_cast<double>(bias[j]) : 0.0);
          // The mean is rounded to f32: 3e-5 near 1000, over a deviation of 1.7.
          const double slack = columns == 1 ? 0.05 : i == 0 ? 2e-4 : 5e-6;
          CHECK(std::abs(y[i * columns + j] - expected) <= slack);
        }
      }
    }
  }
}

TEST_CASE("layer_norm says which operand has which extents", "[norm]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {2, 4}});
  const Value four = graph.input("four", {DType::f32, {4}});
  const Value five = graph.input("five", {DType::f32, {5}});
  check_shape_error([&] { ops::layer_norm(graph, x, five, std::nullopt, 1e-5f); },
                    {"layer_norm", "weight", "[5]", "[4]"});
  check_shape_error([&] { ops::layer_norm(graph, x, four, five, 1e-5f); },
                    {"layer_norm", "bias", "[5]", "[4]"});
}

TEST_CASE("softmax matches float64 and sums to one", "[norm]") {
  for (const std::size_t columns : {1, 2, 15, 16, 17, 300}) {
    CAPTURE(columns);
    Random random(2);
    const auto x = random.values(4 * columns, 30.0f);
    const auto y = run_every_way<float>([&](TestGraph& test) {
      return ops::softmax(test.graph, test.input({DType::f32, {4, columns}}, x));
    });
    for (std::size_t i = 0; i < 4; ++i) {
      double max = -kInf, sum = 0.0, total = 0.0;
      for (std::size_t j = 0; j < columns; ++j) max = std::max<double>(max, x[i * columns + j]);
      for (std::size_t j = 0; j < columns; ++j) sum += std::exp(x[i * columns + j] - max);
      for (std::size_t j = 0; j < columns; ++j) {
        const double expected = std::exp(x[i * columns + j] - max) / sum;
        // x - max is rounded to f32: up to 2e-6 for these values, and exp passes it on.
        CHECK(std::abs(y[i * columns + j] - expected) <= 4e-6 * expected + 1e-30);
        total += y[i * columns + j];
      }
      CHECK(std::abs(total - 1.0) < 1e-5);
    }
  }
}

TEST_CASE("softmax at the edges", "[norm]") {
  std::vector<float> x(6 * 19, 0.5f);
  std::fill_n(x.begin(), 19, -kInf);       // fully masked
  std::fill_n(x.begin() + 19, 19, -kInf);  // one left
  x[19 + 7] = -3.0f;
  x[2 * 19 + 18] = kNan;                       // a NaN among numbers
  std::fill_n(x.begin() + 3 * 19, 19, -kInf);  // a NaN among masked ones
  x[3 * 19] = kNan;
  std::fill_n(x.begin() + 4 * 19, 19, 3e38f);  // huge, equal
  const auto y = run_every_way<float>([&](TestGraph& test) {
    return ops::softmax(test.graph, test.input({DType::f32, {6, 19}}, x));
  });
  for (std::size_t j = 0; j < 19; ++j) {
    CHECK(y[j] == 0.0f);
    CHECK(y[19 + j] == (j == 7 ? 1.0f : 0.0f));
    CHECK(std::isnan(y[2 * 19 + j]));
    CHECK(std::isnan(y[3 * 19 + j]));
    CHECK(y[4 * 19 + j] == Approx(1.0 / 19));
    CHECK(y[5 * 19 + j] == Approx(1.0 / 19));
  }
}

TEST_CASE("quantize keeps every value within half a step, and says its sums", "[norm]") {
  struct Case {
    quant::Format format;
    DType dtype;
    std::size_t block, columns;
  };
  for (const Case& c : {Case{quant::Format::q8_0, DType::act_q8_0, 32, 32},
                        Case{quant::Format::q8_0, DType::act_q8_0, 32, 160},
                        Case{quant::Format::q8_k, DType::act_q8_k, 256, 256},
                        Case{quant::Format::q8_k, DType::act_q8_k, 256, 768}}) {
    Random random(3);
    const auto x = random.values(3 * c.columns, 5.0f);
    const auto bytes = run_every_way<std::byte>([&](TestGraph& test) {
      const Value in = test.input({DType::f32, {3, c.columns}}, x);
      const Value out = ops::quantize(test.graph, in, c.format);
      CHECK(test.graph.type(out) == ops::TensorType{c.dtype, {3, c.columns}});
      return out;
    });
    const auto layout = quant::ActivationLayout::of(c.format, c.columns);
    REQUIRE(bytes.size() == 3 * layout.bytes);
    for (std::size_t i = 0; i < 3; ++i) {
      const quant::ActivationRow row = layout.row(bytes.data() + i * layout.bytes);
      for (std::size_t j = 0; j < c.columns; ++j) {
        const double scale = static_cast<double>(row.scale[j / c.block]);
        CHECK(std::abs(scale * row.q[j] - x[i * c.columns + j]) <= 0.5001 * scale);
      }
      for (std::size_t j = 0; j < c.columns; j += quant::kActivationSumRun) {
        int sum = 0;
        for (std::size_t k = j; k < j + quant::kActivationSumRun; ++k) sum += row.q[k];
        CHECK(row.sums[j / quant::kActivationSumRun] == sum);
      }
    }
  }
}

TEST_CASE("one value is quantized once", "[norm]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {2, 256}});
  const Value y = graph.input("y", {DType::f32, {2, 256}});
  const Value first = ops::quantize(graph, x, quant::Format::q8_0);
  CHECK(ops::quantize(graph, x, quant::Format::q8_0) == first);
  CHECK_FALSE(ops::quantize(graph, x, quant::Format::q8_k) == first);
  CHECK_FALSE(ops::quantize(graph, y, quant::Format::q8_0) == first);
  CHECK(graph.nodes().size() == 3);
}

TEST_CASE("row ops say which operand has which extents", "[norm]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {3, 40}});
  const Value weight = graph.input("weight", {DType::f32, {41}});
  check_shape_error([&] { ops::rms_norm(graph, x, weight, 0.0f); },
                    {"rms_norm", "weight", "[41]", "[40]"});
  check_shape_error([&] { ops::quantize(graph, x, quant::Format::q8_0); },
                    {"quantize", "[3, 40]", "32"});
  check_shape_error([&] { ops::quantize(graph, x, quant::Format::q4_0); }, {"quantize", "Q4_0"});
  check_shape_error(
      [&] {
        ops::softmax(graph, graph.input("i", {DType::i32, {3, 4}}));
      },
      {"softmax", "i32 [3, 4]"});
}

TEST_CASE("row ops accept whole rows; quantize also whole blocks", "[norm]") {
  ops::Graph graph(quant::Isa::scalar);
  using Kind = ops::Partition::Kind;
  const Value x = graph.input("x", {DType::f32, {3, 512}});
  ops::rms_norm(graph, x, graph.input("weight", {DType::f32, {512}}), 0.0f);
  ops::quantize(graph, x, quant::Format::q8_k);
  const ops::Op& norm = *graph.nodes()[0].op;
  const ops::Op& quantize = *graph.nodes()[1].op;
  CHECK(norm.accepts({Kind::rows, 3, 1}));
  CHECK_FALSE(norm.accepts({Kind::rows, 4, 1}));
  CHECK_FALSE(norm.accepts({Kind::columns, 512, 256}));
  CHECK(norm.reach(0) == ops::Reach::own);
  CHECK(norm.reach(1) == ops::Reach::all);
  CHECK(norm.replicable());
  CHECK(quantize.accepts({Kind::columns, 512, 256}));
  CHECK_FALSE(quantize.accepts({Kind::columns, 512, 32}));
  CHECK(quantize.replicable());
}
