// rope_angles and rope against float64, both pairings, under every division.
#include <cmath>

#include "support/graph_runner.h"
#include "support/random.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::RopePairing;
using ops::Value;

namespace {

double angle(const ops::RopeParams& params, std::int32_t position, std::size_t pair) {
  const double exponent =
      -2.0 * static_cast<double>(pair) / static_cast<double>(params.rotary_dims);
  const double factor = params.frequency_factors.empty() ? 1.0 : params.frequency_factors[pair];
  return position * params.position_scale * std::pow(params.base, exponent) / factor;
}

const std::vector<std::int32_t> kPositions{0, 1, 17, 4095, 131071};

}  // namespace

TEST_CASE("angles are cosines, then sines, rounded once", "[rope]") {
  const std::vector<float> factors{1.0f, 2.0f, 8.0f};
  ops::RopeParams params{.head_dim = 8, .rotary_dims = 6, .base = 500000.0, .position_scale = 0.25};
  for (const bool with_factors : {false, true}) {
    if (with_factors) params.frequency_factors = factors;
    const auto y = run_every_way<float>([&](TestGraph& test) {
      return ops::rope_angles(test.graph, test.input({DType::i32, {5}}, kPositions), params);
    });
    REQUIRE(y.size() == 5 * 6);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t p = 0; p < 3; ++p) {
        const double expected = angle(params, kPositions[i], p);
        CHECK(std::abs(y[i * 6 + p] - std::cos(expected)) < 1e-7);
        CHECK(std::abs(y[i * 6 + 3 + p] - std::sin(expected)) < 1e-7);
      }
    }
  }
}

TEST_CASE("YaRN keeps fast pairs, compresses slow ones and mixes those between", "[rope]") {
  ops::RopeParams params{.head_dim = 64, .rotary_dims = 64, .position_scale = 1.0 / 16.0};
  params.yarn = {.original_context = 4096, .magnitude = ops::yarn_magnitude(1.0 / 16.0)};
  CHECK(params.yarn.magnitude == Approx(0.1 * std::log(16.0) + 1.0));
  const auto y = run_every_way<float>([&](TestGraph& test) {
    return ops::rope_angles(test.graph, test.input({DType::i32, {5}}, kPositions), params);
  });
  // Formulas (17) to (25) of the paper, with its numbers: dimension d turns
  // L / (2 pi base^(2d / D)) times.
  const auto pair_of = [](double turns) {
    return 64.0 * std::log(4096.0 / (turns * 2.0 * std::acos(-1.0))) / (2.0 * std::log(10000.0));
  };
  const double low = std::floor(pair_of(32.0));
  const double high = std::ceil(pair_of(1.0));
  REQUIRE(low == 10.0);
  REQUIRE(high == 23.0);
  for (std::size_t i = 0; i < kPositions.size(); ++i) {
    for (std::size_t p = 0; p < 32; ++p) {
      const double ramp =
          std::min(1.0, std::max(0.0, (static_cast<double>(p) - low) / (high - low)));
      const double full = std::pow(10000.0, -2.0 * static_cast<double>(p) / 64.0);
      const double turn = kPositions[i] * (full / 16.0 * ramp + full * (1.0 - ramp));
      CHECK(std::abs(y[i * 64 + p] - std::cos(turn) * params.yarn.magnitude) < 2e-7);
      CHECK(std::abs(y[i * 64 + 32 + p] - std::sin(turn) * params.yarn.magnitude) < 2e-7);
    }
  }
}

TEST_CASE("the factors of Llama 3.1 are those that its files carry", "[rope]") {
  // rope_freqs.weight of Llama 3.1: base 500000, factor 8, 1 to 4 turns within 8192.
  const auto factors = ops::llama3_frequency_factors(128, 500000.0, 8.0, 1.0, 4.0, 8192);
  REQUIRE(factors.size() == 64);
  for (std::size_t p = 0; p < 64; ++p) {
    const double wavelength =
        2.0 * std::acos(-1.0) * std::pow(500000.0, static_cast<double>(p) / 64.0);
    if (wavelength < 8192.0 / 4.0) {
      CHECK(factors[p] == 1.0f);
    } else if (wavelength > 8192.0) {
      CHECK(factors[p] == 8.0f);
    } else {
      const double smooth = (8192.0 / wavelength - 1.0) / (4.0 - 1.0);
      CHECK(factors[p] == Approx(1.0 / ((1.0 - smooth) / 8.0 + smooth)));
    }
  }
  CHECK(factors[28] == 1.0f);
  CHECK(factors[29] > 1.0f);
  CHECK(factors[34] < 8.0f);
  CHECK(factors[35] == 8.0f);
}

TEST_CASE("rope rotates pairs inside each head", "[rope]") {
  struct Case {
    std::size_t heads, head_dim, rotary_dims;
  };
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const Case& c : {Case{1, 2, 2}, Case{3, 8, 8}, Case{5, 8, 4}, Case{4, 24, 16}}) {
      const ops::RopeParams params{
          .head_dim = c.head_dim, .rotary_dims = c.rotary_dims, .pairing = pairing};
      Random random(9);
      const std::size_t width = c.heads * c.head_dim;
      const auto x = random.values(5 * width);
      const auto y = run_every_way<float>([&](TestGraph& test) {
        const Value in = test.input({DType::f32, {5, width}}, x);
        const Value angles =
            ops::rope_angles(test.graph, test.input({DType::i32, {5}}, kPositions), params);
        return ops::rope(test.graph, in, angles, params);
      });
      REQUIRE(y.size() == x.size());
      auto expected = std::vector<double>(x.begin(), x.end());
      for (std::size_t i = 0; i < 5 * c.heads; ++i) {
        for (std::size_t p = 0; p < c.rotary_dims / 2; ++p) {
          const bool adjacent = pairing == RopePairing::adjacent;
          const std::size_t a = i * c.head_dim + (adjacent ? 2 * p : p);
          const std::size_t b = adjacent ? a + 1 : a + c.rotary_dims / 2;
          const double turn = angle(params, kPositions[i / c.heads], p);
          expected[a] = x[a] * std::cos(turn) - x[b] * std::sin(turn);
          expected[b] = x[a] * std::sin(turn) + x[b] * std::cos(turn);
        }
      }
      for (std::size_t j = 0; j < y.size(); ++j) CHECK(std::abs(y[j] - expected[j]) < 1e-6);
    }
  }
}

TEST_CASE("rope at position zero changes nothing", "[rope]") {
  const ops::RopeParams params{.head_dim = 4, .rotary_dims = 4};
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const Value positions = test.input<std::int32_t>({DType::i32, {1}}, {0});
    return ops::rope(test.graph, test.input({DType::f32, {1, 8}}, x),
                     ops::rope_angles(test.graph, positions, params), params);
  });
  CHECK(y == x);
}

TEST_CASE("rope is cut between heads only", "[rope]") {
  ops::Graph graph(quant::Isa::scalar);
  using Kind = ops::Partition::Kind;
  const ops::RopeParams params{.head_dim = 8, .rotary_dims = 8};
  ops::rope(graph, graph.input("x", {DType::f32, {2, 48}}),
            graph.input("angles", {DType::f32, {2, 8}}), params);
  const ops::Op& op = *graph.nodes()[0].op;
  CHECK(op.accepts({Kind::columns, 48, 8}));
  CHECK(op.accepts({Kind::columns, 48, 24}));
  CHECK_FALSE(op.accepts({Kind::columns, 48, 4}));
  CHECK(op.accepts({Kind::rows, 2, 1}));
  CHECK(op.reach(0) == ops::Reach::own);
  CHECK(op.reach(1) == ops::Reach::all);
}

TEST_CASE("rope says which operand has which extents", "[rope]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {3, 40}});
  const Value angles = graph.input("angles", {DType::f32, {3, 6}});
  check_shape_error([&] { ops::rope(graph, x, angles, {.head_dim = 16, .rotary_dims = 6}); },
                    {"rope", "x", "[3, 40]", "16"});
  check_shape_error([&] { ops::rope(graph, x, angles, {.head_dim = 8, .rotary_dims = 8}); },
                    {"rope", "angles", "[3, 6]", "[3, 8]"});
  check_shape_error([&] { ops::rope(graph, x, angles, {.head_dim = 8, .rotary_dims = 10}); },
                    {"rope", "10", "8"});
  check_shape_error([&] { ops::rope_angles(graph, x, {.head_dim = 8, .rotary_dims = 8}); },
                    {"rope_angles", "positions", "f32 [3, 40]"});
  const std::vector<float> factors(3, 1.0f);
  const Value positions = graph.input("positions", {DType::i32, {3}});
  check_shape_error(
      [&] {
        ops::rope_angles(graph, positions,
                         {.head_dim = 8, .rotary_dims = 8, .frequency_factors = factors});
      },
      {"rope_angles", "3", "4"});
}
