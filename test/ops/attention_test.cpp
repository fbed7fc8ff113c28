// attention and cache_write: lengths around the piece size, grouped heads, both cache types, slots.
#include <cmath>
#include <limits>
#include <numeric>

#include "quant/half.h"
#include "support/graph_runner.h"
#include "support/random.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;

namespace {

constexpr std::size_t kPiece = ops::kAttentionPiece;

struct Scene {
  std::size_t heads = 4, kv_heads = 2, head_dim = 24, slots = 2, context = 2 * kPiece + 8;
  std::vector<std::int32_t> positions, slot_of;
  float range = 1.0f;

  std::size_t tokens() const { return positions.size(); }
  std::size_t width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
  ops::AttentionParams params() const { return {heads, kv_heads, head_dim, 0.2f}; }
};

struct Data {
  std::vector<float> q, k, v;  // the caches as f32, already rounded where the cache is f16
};

Data make_data(const Scene& scene, bool half, std::uint32_t seed) {
  Random random(seed);
  Data data{random.values(scene.tokens() * scene.width(), scene.range),
            random.values(scene.slots * scene.context * scene.kv_width(), scene.range),
            random.values(scene.slots * scene.context * scene.kv_width())};
  if (half) {
    for (float& value : data.k) value = quant::f16_to_f32(quant::f32_to_f16(value));
    for (float& value : data.v) value = quant::f16_to_f32(quant::f32_to_f16(value));
  }
  return data;
}

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values) result.push_back(quant::f32_to_f16(value));
  return result;
}

Value build(TestGraph& test, const Scene& scene, const Data& data, bool half) {
  const ops::TensorType cache{half ? DType::f16 : DType::f32,
                              {scene.slots, scene.context, scene.kv_width()}};
  const Value q = test.input({DType::f32, {scene.tokens(), scene.width()}}, data.q);
  const Value k = half ? test.external(cache, halves(data.k)) : test.external(cache, data.k);
  const Value v = half ? test.external(cache, halves(data.v)) : test.external(cache, data.v);
  const Value positions = test.input({DType::i32, {scene.tokens()}}, scene.positions);
  const Value slots = test.input({DType::i32, {scene.tokens()}}, scene.slot_of);
  return ops::attention(test.graph, q, k, v, positions, slots, scene.params());
}

std::vector<double> reference(const Scene& scene, const Data& data) {
  std::vector<double> y(data.q.size(), 0.0);
  for (std::size_t t = 0; t < scene.tokens(); ++t) {
    const std::size_t row = static_cast<std::size_t>(scene.slot_of[t]) * scene.context;
    const std::size_t length = static_cast<std::size_t>(scene.positions[t]) + 1;
    for (std::size_t h = 0; h < scene.heads; ++h) {
      const std::size_t kv = h / (scene.heads / scene.kv_heads) * scene.head_dim;
      const std::size_t at = t * scene.width() + h * scene.head_dim;
      std::vector<double> weights(length, 0.0);
      for (std::size_t j = 0; j < length; ++j) {
        for (std::size_t d = 0; d < scene.head_dim; ++d) {
          weights[j] += static_cast<double>(data.q[at + d]) *
                        static_cast<double>(data.k[(row + j) * scene.kv_width() + kv + d]);
        }
        weights[j] *= static_cast<double>(scene.params().scale);
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      for (double& weight : weights) weight = std::exp(weight - max);
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t j = 0; j < length; ++j) {
        for (std::size_t d = 0; d < scene.head_dim; ++d) {
          y[at + d] +=
              weights[j] / sum * static_cast<double>(data.v[(row + j) * scene.kv_width() + kv + d]);
        }
      }
    }
  }
  return y;
}

}  // namespace

TEST_CASE("attention matches float64 around the piece size", "[attention]") {
  Scene scene;
  for (const std::size_t length : {std::size_t{1}, std::size_t{2}, kPiece - 1, kPiece, kPiece + 1,
                                   2 * kPiece, 2 * kPiece + 1}) {
    scene.positions.push_back(static_cast<std::int32_t>(length - 1));
    scene.slot_of.push_back(static_cast<std::int32_t>(length % 2));
  }
  for (const bool half : {false, true}) {
    for (const float range : {1.0f, 12.0f}) {  // the second makes the running maximum move
      scene.range = range;
      const Data data = make_data(scene, half, 11);
      const auto y =
          run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, half); });
      const auto expected = reference(scene, data);
      REQUIRE(y.size() == expected.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        CAPTURE(half, range, i);
        CHECK(std::abs(y[i] - expected[i]) < (range > 1 ? 1e-4 : 2e-6));
      }
    }
  }
}

TEST_CASE("attention handles one head, equal heads and odd sizes", "[attention]") {
  for (const auto& [heads, kv_heads, head_dim] :
       {std::tuple{1, 1, 1}, std::tuple{3, 3, 17}, std::tuple{6, 1, 16}}) {
    Scene scene;
    scene.heads = static_cast<std::size_t>(heads);
    scene.kv_heads = static_cast<std::size_t>(kv_heads);
    scene.head_dim = static_cast<std::size_t>(head_dim);
    scene.positions = {4, 130};
    scene.slot_of = {1, 0};
    const Data data = make_data(scene, true, 12);
    const auto y =
        run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, true); });
    const auto expected = reference(scene, data);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::abs(y[i] - expected[i]) < 2e-6);
  }
}

TEST_CASE("a token's bits do not depend on its batch mates", "[attention]") {
  Scene together;
  together.positions = {200, 3, 129};
  together.slot_of = {0, 1, 1};
  const Data data = make_data(together, true, 13);
  const auto all =
      run_every_way<float>([&](TestGraph& test) { return build(test, together, data, true); });
  for (std::size_t t = 0; t < 3; ++t) {
    Scene alone = together;
    alone.positions = {together.positions[t]};
    alone.slot_of = {together.slot_of[t]};
    Data own = data;
    const auto first = data.q.begin() + static_cast<std::ptrdiff_t>(t * together.width());
    own.q.assign(first, first + static_cast<std::ptrdiff_t>(together.width()));
    const auto one =
        run_every_way<float>([&](TestGraph& test) { return build(test, alone, own, true); });
    CHECK(std::memcmp(one.data(), &all[t * together.width()], one.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("positions behind the token are never read, and a NaN stays in its token",
          "[attention]") {
  Scene scene;
  scene.slots = 1;
  scene.positions = {5, 6, 7};
  scene.slot_of = {0, 0, 0};
  Data data = make_data(scene, false, 14);
  const auto clean =
      run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, false); });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(data.k.begin() + static_cast<std::ptrdiff_t>(8 * scene.kv_width()), data.k.end(), nan);
  std::fill(data.v.begin() + static_cast<std::ptrdiff_t>(8 * scene.kv_width()), data.v.end(), nan);
  std::fill_n(data.q.begin() + static_cast<std::ptrdiff_t>(scene.width()), scene.width(), nan);
  const auto dirty =
      run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, false); });
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (i / scene.width() == 1) {
      CHECK(std::isnan(dirty[i]));
    } else {
      CHECK(dirty[i] == clean[i]);
    }
  }
}

TEST_CASE("cache_write puts each token into its place and leaves the rest", "[attention]") {
  const std::size_t context = 5;
  for (const std::size_t width : {1, 31, 33, 96}) {
    Random random(15);
    const auto x = random.values(3 * width);
    const std::vector<std::int32_t> positions{4, 0, 2};
    const std::vector<std::int32_t> slots{1, 1, 0};
    const auto write = [&](TestGraph& test, Value cache) {
      const Value in = test.input({DType::f32, {3, width}}, x);
      const Value out =
          ops::cache_write(test.graph, in, cache, test.input({DType::i32, {3}}, positions),
                           test.input({DType::i32, {3}}, slots));
      CHECK(test.graph.nodes().back().op->alias() == 1);
      return out;
    };
    const auto wide = run_every_way<float>([&](TestGraph& test) {
      return write(test, test.external({DType::f32, {2, context, width}},
                                       std::vector<float>(2 * context * width, 7.0f)));
    });
    const auto half = run_every_way<std::uint16_t>([&](TestGraph& test) {
      return write(test, test.external({DType::f16, {2, context, width}},
                                       std::vector<std::uint16_t>(2 * context * width, 7)));
    });
    for (std::size_t row = 0; row < 2 * context; ++row) {
      for (std::size_t j = 0; j < width; ++j) {
        std::size_t token = 3;
        for (std::size_t t = 0; t < 3; ++t) {
          if (row == static_cast<std::size_t>(slots[t]) * context +
                         static_cast<std::size_t>(positions[t])) {
            token = t;
          }
        }
        const std::size_t at = row * width + j;
        CHECK(wide[at] == (token < 3 ? x[token * width + j] : 7.0f));
        CHECK(half[at] == (token < 3 ? quant::f32_to_f16(x[token * width + j]) : 7));
      }
    }
  }
}

TEST_CASE("what is written to a cache is what attention reads", "[attention]") {
  const ops::AttentionParams params{2, 1, 8, 1.0f};
  Random random(16);
  const auto v = random.values(8);
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const ops::TensorType cache{DType::f32, {1, 4, 8}};
    const Value positions = test.input<std::int32_t>({DType::i32, {1}}, {0});
    const Value slots = test.input<std::int32_t>({DType::i32, {1}}, {0});
    const Value keys = test.external(cache, std::vector<float>(32, 0.0f));
    const Value values = test.external(cache, std::vector<float>(32, 0.0f));
    const Value written =
        ops::cache_write(test.graph, test.input({DType::f32, {1, 8}}, v), values, positions, slots);
    const Value q = test.input({DType::f32, {1, 16}}, random.values(16));
    return ops::attention(test.graph, q, keys, written, positions, slots, params);
  });
  for (std::size_t i = 0; i < 16; ++i) CHECK(y[i] == v[i % 8]);
}

TEST_CASE("attention and cache_write say which operand has which extents", "[attention]") {
  ops::Graph graph(quant::Isa::scalar);
  const Value q = graph.input("q", {DType::f32, {3, 32}});
  const Value cache = graph.input("cache", {DType::f16, {2, 9, 16}});
  const Value longer = graph.input("longer", {DType::f16, {2, 10, 16}});
  const Value per_token = graph.input("per_token", {DType::i32, {3}});
  const Value four = graph.input("four", {DType::i32, {4}});
  const ops::AttentionParams good{4, 2, 8, 1.0f};
  check_shape_error([&] { ops::attention(graph, q, cache, longer, per_token, per_token, good); },
                    {"attention", "v_cache", "f16 [2, 10, 16]", "f16 [2, 9, 16]"});
  check_shape_error([&] { ops::attention(graph, q, cache, cache, four, per_token, good); },
                    {"attention", "positions", "[4]", "[3]"});
  check_shape_error([&] { ops::attention(graph, q, cache, cache, per_token, four, good); },
                    {"attention", "slots", "[4]", "[3]"});
  check_shape_error(
      [&] {
        ops::attention(graph, q, cache, cache, per_token, per_token, {4, 3, 8, 1.0f});
      },
      {"attention", "4 heads", "kv 3"});
  check_shape_error(
      [&] {
        ops::attention(graph, q, cache, cache, per_token, per_token, {4, 4, 8, 1.0f});
      },
      {"attention", "k_cache", "[2, 9, 16]", "32"});
  check_shape_error(
      [&] {
        ops::attention(graph, q, cache, cache, per_token, per_token, {2, 2, 8, 1.0f});
      },
      {"attention", "q", "[3, 32]", "[3, 16]"});
  check_shape_error([&] { ops::cache_write(graph, q, cache, per_token, per_token); },
                    {"cache_write", "cache", "[2, 9, 16]", "32"});
}
