// Mixtures of experts: top_k, gather_columns, expert_matmul, weighted_sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/graph_runner.h"
#include "support/packed_matrix.h"
#include "support/random.h"
#include "support/random_rows.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;
using quant::Format;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Experts of one format, with the matmul that each would be by itself.
struct Experts {
  std::vector<Packed> packed;
  std::vector<ops::ShardedMatrix> matrices;

  Experts(Format format, quant::Isa isa, std::size_t count, std::size_t rows, std::size_t columns) {
    Random random(61);
    for (std::size_t e = 0; e < count; ++e) {
      const auto file = random_rows(quant::traits(format), rows, columns, random);
      packed.push_back(pack(*ops::find_kernel(format, isa), file, rows, columns, 2));
      matrices.push_back(packed.back().matrix);
    }
  }
};

std::vector<std::int32_t> random_ids(std::size_t tokens, std::size_t used, std::size_t experts) {
  Random random(62);
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < tokens; ++i) {
    std::vector<std::int32_t> all(experts);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t j = 0; j < used; ++j) {
      std::swap(all[j], all[j + random.below(experts - j)]);
      ids.push_back(all[j]);
    }
  }
  return ids;
}

std::vector<float> row_of(const std::vector<float>& x, std::size_t row, std::size_t columns) {
  const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
  return {first, first + static_cast<std::ptrdiff_t>(columns)};
}

}  // namespace

TEST_CASE("top_k ranks values, the lower column first among equals", "[experts]") {
  const std::vector<float> x{3, 1, 3,    2, 7,  //
                             0, 0, 0,    0, 0,  //
                             1, 2, kNan, 4, 3};
  const auto y = run_every_way<std::int32_t>([&](TestGraph& test) {
    return ops::top_k(test.graph, test.input({DType::f32, {3, 5}}, x), 4);
  });
  CHECK(y == std::vector<std::int32_t>{4, 0, 2, 3, 0, 1, 2, 3, 3, 4, 1, 0});

  Random random(63);
  const auto many = random.values(7 * 130);
  for (const std::size_t count : {1, 8, 130}) {
    const auto best = run_every_way<std::int32_t>([&](TestGraph& test) {
      return ops::top_k(test.graph, test.input({DType::f32, {7, 130}}, many), count);
    });
    for (std::size_t i = 0; i < 7; ++i) {
      const auto row = row_of(many, i, 130);
      std::vector<std::int32_t> expected(130);
      std::iota(expected.begin(), expected.end(), 0);
      std::stable_sort(expected.begin(), expected.end(), [&](std::int32_t a, std::int32_t b) {
        return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
      });
      for (std::size_t j = 0; j < count; ++j) CHECK(best[i * count + j] == expected[j]);
    }
  }
}

TEST_CASE("gather_columns picks, weighted_sum adds in order", "[experts]") {
  const auto picked = run_every_way<float>([](TestGraph& test) {
    const Value x = test.input<float>({DType::f32, {2, 3}}, {1, 2, 3, 4, 5, 6});
    return ops::gather_columns(test.graph, x,
                               test.input<std::int32_t>({DType::i32, {2, 2}}, {2, 0, 1, 1}));
  });
  CHECK(picked == std::vector<float>{3, 1, 5, 5});

  Random random(64);
  for (const std::size_t columns : {1, 17, 64}) {
    const auto x = random.values(3 * 5 * columns);
    const auto weights = random.values(3 * 5);
    const auto y = run_every_way<float>([&](TestGraph& test) {
      return ops::weighted_sum(test.graph, test.input({DType::f32, {3, 5, columns}}, x),
                               test.input({DType::f32, {3, 5}}, weights));
    });
    REQUIRE(y.size() == 3 * columns);
    for (std::size_t i = 0; i < y.size(); ++i) {
      float expected = 0.0f;
      for (std::size_t j = 0; j < 5; ++j) {
        const std::size_t row = i / columns * 5 + j;
        expected = std::fma(weights[row], x[row * columns + i % columns], expected);
      }
      CHECK(y[i] == expected);
    }
  }
}

TEST_CASE("expert_matmul is the matmul of the experts that were chosen, bit for bit", "[experts]") {
  constexpr std::size_t kExperts = 5;
  constexpr std::size_t kColumns = 256;
  for (const Format format : {Format::f16, Format::q8_0, Format::q4_0, Format::q4_k}) {
    for (const std::size_t tokens : {1, 3, 150}) {
      for (const bool each : {false, true}) {  // an x for every choice
        const std::size_t rows = 41;
        const std::size_t used = 2;
        CAPTURE(quant::traits(format).name, tokens, each);
        const Experts scalar(format, quant::Isa::scalar, kExperts, rows, kColumns);
        Random random(65);
        const auto ids = random_ids(tokens, used, kExperts);
        const auto x = random.values(tokens * (each ? used : 1) * kColumns);
        std::vector<std::unique_ptr<Experts>> alive;
        const auto y = run_every_way<float>([&](TestGraph& test) {
          const ops::Shape shape =
              each ? ops::Shape{tokens, used, kColumns} : ops::Shape{tokens, kColumns};
          const Value in = test.input({DType::f32, shape}, x);
          alive.push_back(
              std::make_unique<Experts>(format, test.graph.isa(), kExperts, rows, kColumns));
          return ops::expert_matmul(test.graph, in, alive.back()->matrices,
                                    test.input({DType::i32, {tokens, used}}, ids));
        });
        REQUIRE(y.size() == tokens * used * rows);
        for (std::size_t i = 0; i < tokens * used; ++i) {
          TestGraph one(quant::Isa::scalar);
          const Value in =
              one.input({DType::f32, {1, kColumns}}, row_of(x, each ? i : i / used, kColumns));
          const Value out =
              ops::matmul(one.graph, in, scalar.matrices[static_cast<std::size_t>(ids[i])]);
          const auto expected = from_bytes<float>(GraphRun(one, 1, 0).read(out));
          if (std::memcmp(expected.data(), &y[i * rows], rows * sizeof(float)) != 0) {
            FAIL("choice " << i << " has other bits");
          }
        }
      }
    }
  }
}

TEST_CASE("experts may be chosen by nobody, by everybody or twice by one token", "[experts]") {
  constexpr std::size_t kTokens = 70;
  for (const bool twice : {false, true}) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < kTokens; ++i) {
      ids.push_back(3);
      ids.push_back(twice ? 3 : 1);
    }
    Random random(67);
    const auto x = random.values(kTokens * 64);
    std::vector<std::unique_ptr<Experts>> alive;
    const auto y = run_every_way<float>([&](TestGraph& test) {
      const Value in = test.input({DType::f32, {kTokens, 64}}, x);
      alive.push_back(std::make_unique<Experts>(Format::q8_0, test.graph.isa(), 4, 24, 64));
      return ops::expert_matmul(test.graph, in, alive.back()->matrices,
                                test.input({DType::i32, {kTokens, 2}}, ids));
    });
    const Experts scalar(Format::q8_0, quant::Isa::scalar, 4, 24, 64);
    for (std::size_t u = 0; u < 2; ++u) {
      TestGraph one(quant::Isa::scalar);
      const Value in = one.input({DType::f32, {kTokens, 64}}, x);
      const Value out = ops::matmul(one.graph, in, scalar.matrices[u == 0 || twice ? 3 : 1]);
      const auto expected = from_bytes<float>(GraphRun(one, 1, 0).read(out));
      for (std::size_t i = 0; i < kTokens; ++i) {
        CHECK(std::memcmp(&expected[i * 24], &y[(2 * i + u) * 24], 24 * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("a mixture of experts matches float64", "[experts]") {
  constexpr std::size_t kTokens = 6, kWidth = 64, kInner = 96, kExperts = 4, kUsed = 2;
  Random random(66);
  const auto x = random.values(kTokens * kWidth);
  const auto scores = random.values(kTokens * kExperts, 3.0f);
  std::vector<std::vector<float>> up, down;
  for (std::size_t e = 0; e < kExperts; ++e) {
    up.push_back(random.values(kInner * kWidth, 0.3f));
    down.push_back(random.values(kWidth * kInner, 0.3f));
  }
  std::vector<std::unique_ptr<std::vector<Packed>>> alive;
  std::vector<std::unique_ptr<std::vector<ops::ShardedMatrix>>> lists;
  const auto experts = [&](const std::vector<std::vector<float>>& weights, quant::Isa isa,
                           std::size_t rows,
                           std::size_t columns) -> std::span<const ops::ShardedMatrix> {
    auto& packed = *alive.emplace_back(std::make_unique<std::vector<Packed>>());
    auto& list = *lists.emplace_back(std::make_unique<std::vector<ops::ShardedMatrix>>());
    for (const auto& one : weights) {
      packed.push_back(pack(*ops::find_kernel(Format::f32, isa), to_bytes(one), rows, columns, 1));
      list.push_back(packed.back().matrix);
    }
    return list;
  };
  const auto y = run_every_way<float>([&](TestGraph& test) {
    ops::Graph& graph = test.graph;
    const Value in = test.input({DType::f32, {kTokens, kWidth}}, x);
    const Value logits = test.input({DType::f32, {kTokens, kExperts}}, scores);
    const Value ids = ops::top_k(graph, logits, kUsed);
    const Value weights = ops::softmax(graph, ops::gather_columns(graph, logits, ids));
    const Value hidden = ops::gelu(
        graph, ops::expert_matmul(graph, in, experts(up, graph.isa(), kInner, kWidth), ids));
    const Value out =
        ops::expert_matmul(graph, hidden, experts(down, graph.isa(), kWidth, kInner), ids);
    return ops::weighted_sum(graph, out, weights);
  });
  REQUIRE(y.size() == kTokens * kWidth);
  for (std::size_t t = 0; t < kTokens; ++t) {
    std::vector<std::size_t> order(kExperts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto score = [&](std::size_t e) { return static_cast<double>(scores[t * kExperts + e]); };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
    const double total = std::exp(score(order[0])) + std::exp(score(order[1]));
    std::vector<double> expected(kWidth, 0.0);
    for (std::size_t u = 0; u < kUsed; ++u) {
      const std::size_t e = order[u];
      std::vector<double> hidden(kInner, 0.0);
      for (std::size_t i = 0; i < kInner; ++i) {
        double v = 0.0;
        for (std::size_t k = 0; k < kWidth; ++k) {
          v += static_cast<double>(up[e][i * kWidth + k]) * x[t * kWidth + k];
        }
        hidden[i] =
            0.5 * v *
            (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      }
      for (std::size_t i = 0; i < kWidth; ++i) {
        double v = 0.0;
        for (std::size_t k = 0; k < kInner; ++k) v += down[e][i * kInner + k] * hidden[k];
        expected[i] += std::exp(score(e)) / total * v;
      }
    }
    for (std::size_t i = 0; i < kWidth; ++i) {
      CHECK(std::abs(y[t * kWidth + i] - expected[i]) < 5e-6);
    }
  }
}

TEST_CASE("expert ops say which operand has which extents", "[experts]") {
  ops::Graph graph(quant::Isa::scalar);
  Experts experts(Format::q8_0, quant::Isa::scalar, 2, 8, 64);
  const Value x = graph.input("x", {DType::f32, {3, 64}});
  const Value narrow = graph.input("narrow", {DType::f32, {3, 32}});
  const Value ids = graph.input("ids", {DType::i32, {3, 2}});
  const Value few = graph.input("few", {DType::i32, {2, 2}});
  const Value parts = graph.input("parts", {DType::f32, {3, 4, 8}});
  check_shape_error([&] { ops::expert_matmul(graph, narrow, experts.matrices, ids); },
                    {"expert_matmul", "[3, 32]", "[3, 64]", "[3, 2, 64]"});
  check_shape_error([&] { ops::expert_matmul(graph, x, experts.matrices, few); },
                    {"expert_matmul", "[3, 64]", "[2, 64]"});
  check_shape_error([&] { ops::expert_matmul(graph, x, experts.matrices, x); },
                    {"expert_matmul", "ids", "f32 [3, 64]"});
  check_shape_error([&] { ops::expert_matmul(graph, x, {}, ids); }, {"no experts"});
  experts.matrices[1].rows = 4;
  check_shape_error([&] { ops::expert_matmul(graph, x, experts.matrices, ids); },
                    {"expert_matmul", "8 rows"});
  check_shape_error([&] { ops::top_k(graph, x, 65); }, {"top_k", "[3, 64]", "65"});
  check_shape_error([&] { ops::gather_columns(graph, x, few); },
                    {"gather_columns", "ids", "[2, 2]", "[3, 2]"});
  check_shape_error([&] { ops::weighted_sum(graph, x, ids); }, {"weighted_sum", "x", "[3, 64]"});
  check_shape_error([&] { ops::weighted_sum(graph, parts, narrow); },
                    {"weighted_sum", "weights", "[3, 32]", "[3, 4]"});
}
