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
  std::size_t window = 0;
  float soft_cap = 0.0f;

  std::size_t tokens() const { return positions.size(); }
  std::size_t width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
  ops::AttentionParams params() const {
    return {heads, kv_heads, head_dim, 0.2f, window, soft_cap};
  }
};

struct Data {
  std::vector<float> q, k, v;  // the caches as f32, already rounded where the cache is narrower
};

const quant::FormatTraits& q8_0 = quant::traits(quant::Format::q8_0);

std::vector<std::byte> blocks(const std::vector<float>& values) {
  std::vector<std::byte> result(quant::bytes_of(q8_0.format, values.size()));
  q8_0.encode(values.data(), nullptr, result.data(), values.size());
  return result;
}

Data make_data(const Scene& scene, DType cache, std::uint32_t seed) {
  Random random(seed);
  Data data{random.values(scene.tokens() * scene.width(), scene.range),
            random.values(scene.slots * scene.context * scene.kv_width(), scene.range),
            random.values(scene.slots * scene.context * scene.kv_width())};
  for (std::vector<float>* values : {&data.k, &data.v}) {
    if (cache == DType::f16) {
      for (float& value : *values) value = quant::f16_to_f32(quant::f32_to_f16(value));
    } else if (cache == DType::q8_0) {
      q8_0.decode(blocks(*values).data(), values->data(), values->size());
    }
  }
  return data;
}

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values) result.push_back(quant::f32_to_f16(value));
  return result;
}

// `given` is [slots, context, kv_heads, head_dim], a cache is head by head.
Value cache_of(TestGraph& test, const Scene& scene, const std::vector<float>& given, DType cache) {
  const ops::TensorType type{cache, {scene.kv_heads, scene.slots, scene.context, scene.head_dim}};
  std::vector<float> values;
  for (std::size_t h = 0; h < scene.kv_heads; ++h) {
    for (std::size_t row = 0; row < scene.slots * scene.context; ++row) {
      const auto* const from = &given[row * scene.kv_width() + h * scene.head_dim];
      values.insert(values.end(), from, from + scene.head_dim);
    }
  }
  if (cache == DType::f16) return test.external(type, halves(values));
  if (cache == DType::q8_0) return test.external(type, blocks(values));
  return test.external(type, values);
}

Value build(TestGraph& test, const Scene& scene, const Data& data, DType cache) {
  const Value q = test.input({DType::f32, {scene.tokens(), scene.width()}}, data.q);
  const Value k = cache_of(test, scene, data.k, cache);
  const Value v = cache_of(test, scene, data.v, cache);
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
        const double cap = scene.soft_cap;
        if (cap > 0.0) weights[j] = cap * std::tanh(weights[j] / cap);
        if (scene.window != 0 && j + scene.window < length) {
          weights[j] = -std::numeric_limits<double>::infinity();
        }
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

// Whether token t has the bits of its row of y when it is computed by itself.
bool same_alone(const Scene& scene, const Data& data, DType cache, std::size_t t,
                const std::vector<float>& y) {
  Scene alone = scene;
  alone.positions = {scene.positions[t]};
  alone.slot_of = {scene.slot_of[t]};
  Data own = data;
  const auto first = data.q.begin() + static_cast<std::ptrdiff_t>(t * scene.width());
  own.q.assign(first, first + static_cast<std::ptrdiff_t>(scene.width()));
  TestGraph one(quant::Isa::scalar);
  const Value result = build(one, alone, own, cache);
  const auto bytes = GraphRun(one, 1, 0).read(result);
  return std::memcmp(bytes.data(), &y[t * scene.width()], bytes.size()) == 0;
}

}  // namespace

TEST_CASE("attention matches float64 around the piece size", "[attention]") {
  Scene scene;
  for (const std::size_t length : {std::size_t{1}, std::size_t{2}, kPiece - 1, kPiece, kPiece + 1,
                                   2 * kPiece, 2 * kPiece + 1}) {
    scene.positions.push_back(static_cast<std::int32_t>(length - 1));
    scene.slot_of.push_back(static_cast<std::int32_t>(length % 2));
  }
  for (const DType cache : {DType::f32, DType::f16}) {
    for (const float range : {1.0f, 12.0f}) {  // the second makes the running maximum move
      scene.range = range;
      const Data data = make_data(scene, cache, 11);
      const auto y =
          run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, cache); });
      const auto expected = reference(scene, data);
      REQUIRE(y.size() == expected.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        CAPTURE(ops::name_of(cache), range, i);
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
    const Data data = make_data(scene, DType::f16, 12);
    const auto y =
        run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, DType::f16); });
    const auto expected = reference(scene, data);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::abs(y[i] - expected[i]) < 2e-6);
  }
}

TEST_CASE("a token's bits do not depend on its batch mates", "[attention]") {
  Scene together;
  together.positions = {200, 3, 129};
  together.slot_of = {0, 1, 1};
  const Data data = make_data(together, DType::f16, 13);
  const auto all = run_every_way<float>(
      [&](TestGraph& test) { return build(test, together, data, DType::f16); });
  for (std::size_t t = 0; t < 3; ++t) {
    Scene alone = together;
    alone.positions = {together.positions[t]};
    alone.slot_of = {together.slot_of[t]};
    Data own = data;
    const auto first = data.q.begin() + static_cast<std::ptrdiff_t>(t * together.width());
    own.q.assign(first, first + static_cast<std::ptrdiff_t>(together.width()));
    const auto one =
        run_every_way<float>([&](TestGraph& test) { return build(test, alone, own, DType::f16); });
    CHECK(std::memcmp(one.data(), &all[t * together.width()], one.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("heads that share keys, in blocks of tokens, are right and of the same bits alone",
          "[attention]") {
  for (const std::size_t group : {1, 2, 4, 7, 8}) {
    for (const std::size_t head_dim : {32, 48, 64, 80, 128}) {
      Scene scene;
      scene.kv_heads = 2;
      scene.heads = 2 * group;
      scene.head_dim = head_dim;
      // Five neighbours across the edge of a piece, two far apart, a start, and the other slot.
      scene.positions = {126, 127, 128, 129, 130, 30, 260, 0, 15, 16};
      scene.slot_of = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
      for (const DType cache : {DType::f32, DType::f16, DType::q8_0}) {
        if (cache == DType::q8_0 && head_dim % ops::kCacheBlock != 0) continue;
        CAPTURE(group, head_dim, ops::name_of(cache));
        const Data data = make_data(scene, cache, 17);
        const auto y =
            run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, cache); });
        const auto expected = reference(scene, data);
        double worst = 0.0;
        for (std::size_t i = 0; i < y.size(); ++i) {
          worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected[i]));
        }
        CHECK(worst < 4e-6);
        for (const std::size_t t : {std::size_t{2}, std::size_t{6}, std::size_t{9}}) {
          CHECK(same_alone(scene, data, cache, t, y));
        }
      }
    }
  }
}

TEST_CASE("a window and a soft cap match float64, with the same bits alone", "[attention]") {
  for (const std::size_t head_dim : {24, 64}) {
    for (const std::size_t window : {1, 2, 31, 33, 128, 129, 1000}) {
      for (const float soft_cap : {0.0f, 1.5f}) {
        Scene scene;
        scene.head_dim = head_dim;
        scene.window = window;
        scene.soft_cap = soft_cap;
        scene.range = 3.0f;
        scene.positions = {126, 127, 128, 129, 130, 30, 260, 0, 15, 16};
        scene.slot_of = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
        for (const DType cache : {DType::f32, DType::f16}) {
          CAPTURE(head_dim, window, soft_cap, ops::name_of(cache));
          const Data data = make_data(scene, cache, 20);
          const auto y = run_every_way<float>(
              [&](TestGraph& test) { return build(test, scene, data, cache); });
          const auto expected = reference(scene, data);
          double worst = 0.0;
          for (std::size_t i = 0; i < y.size(); ++i) {
            worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected[i]));
          }
          CHECK(worst < 1e-5);
          for (std::size_t t = 0; t < scene.tokens(); ++t) {
            CHECK(same_alone(scene, data, cache, t, y));
          }
        }
      }
    }
  }
}

TEST_CASE("positions before the window are never read", "[attention]") {
  for (const std::size_t head_dim : {24, 64}) {
    Scene scene;
    scene.slots = 1;
    scene.head_dim = head_dim;
    scene.window = 20;
    scene.positions = {59, 60, 61, 62};
    scene.slot_of = {0, 0, 0, 0};
    for (const DType cache : {DType::f32, DType::f16}) {
      CAPTURE(head_dim, ops::name_of(cache));
      Data data = make_data(scene, cache, 21);
      const auto clean =
          run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, cache); });
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::fill_n(data.k.begin(), 40 * scene.kv_width(), nan);
      std::fill_n(data.v.begin(), 40 * scene.kv_width(), nan);
      const auto dirty =
          run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, cache); });
      CHECK(dirty == clean);
    }
  }
}

TEST_CASE("a q8_0 cache wants whole blocks, and cache_write fills them as a file has them",
          "[attention]") {
  // 4 heads of 24: a token's values are whole blocks, those of a head are not.
  ops::Graph refused(quant::Isa::scalar);
  const Value q = refused.input("q", {DType::f32, {1, 96}});
  const Value odd = refused.input("cache", {DType::q8_0, {4, 1, 8, 24}});
  const Value one = refused.input("one", {DType::i32, {1}});
  check_shape_error(
      [&] {
        ops::attention(refused, q, odd, odd, one, one, {4, 4, 24, 0.2f});
      },
      {"attention", "k_cache", "heads of 24", "blocks of 32"});
  check_shape_error([&] { ops::cache_write(refused, q, odd, one, one); },
                    {"cache_write", "cache", "[4, 1, 8, 24]", "whole blocks"});

  Random random(19);
  const auto x = random.values(2 * 96);
  const std::size_t row = quant::bytes_of(q8_0.format, 96);
  const auto written = run_every_way<std::byte>([&](TestGraph& test) {
    const Value cache =
        test.external({DType::q8_0, {1, 2, 3, 96}}, std::vector<std::byte>(6 * row, std::byte{7}));
    return ops::cache_write(test.graph, test.input({DType::f32, {2, 96}}, x), cache,
                            test.input<std::int32_t>({DType::i32, {2}}, {2, 0}),
                            test.input<std::int32_t>({DType::i32, {2}}, {0, 1}));
  });
  auto expected = std::vector<std::byte>(6 * row, std::byte{7});
  const auto encoded = blocks(x);
  std::memcpy(&expected[2 * row], encoded.data(), 2 * row);  // slot 0 position 2, slot 1 position 0
  CHECK(written == expected);
}

TEST_CASE("positions behind the token are never read, and a NaN stays in its token",
          "[attention]") {
  Scene scene;
  scene.slots = 1;
  scene.positions = {5, 6, 7};
  scene.slot_of = {0, 0, 0};
  Data data = make_data(scene, DType::f32, 14);
  const auto clean =
      run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, DType::f32); });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill(data.k.begin() + static_cast<std::ptrdiff_t>(8 * scene.kv_width()), data.k.end(), nan);
  std::fill(data.v.begin() + static_cast<std::ptrdiff_t>(8 * scene.kv_width()), data.v.end(), nan);
  std::fill_n(data.q.begin() + static_cast<std::ptrdiff_t>(scene.width()), scene.width(), nan);
  const auto dirty =
      run_every_way<float>([&](TestGraph& test) { return build(test, scene, data, DType::f32); });
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
      return write(test, test.external({DType::f32, {1, 2, context, width}},
                                       std::vector<float>(2 * context * width, 7.0f)));
    });
    const auto half = run_every_way<std::uint16_t>([&](TestGraph& test) {
      return write(test, test.external({DType::f16, {1, 2, context, width}},
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

TEST_CASE("cache_write sends every head to its own part", "[attention]") {
  for (const std::size_t head_dim : {3, 32}) {
    Random random(22);
    const std::size_t heads = 5;
    const auto x = random.values(2 * heads * head_dim);
    const auto cache = run_every_way<float>([&](TestGraph& test) {
      const Value in = test.input({DType::f32, {2, heads * head_dim}}, x);
      const Value empty = test.external({DType::f32, {heads, 2, 4, head_dim}},
                                        std::vector<float>(heads * 8 * head_dim, 7.0f));
      return ops::cache_write(test.graph, in, empty,
                              test.input<std::int32_t>({DType::i32, {2}}, {3, 1}),
                              test.input<std::int32_t>({DType::i32, {2}}, {1, 0}));
    });
    for (std::size_t i = 0; i < cache.size(); ++i) {
      const std::size_t head = i / head_dim / 8;
      const std::size_t place = i / head_dim % 8;  // slot * 4 + position
      const std::size_t column = head * head_dim + i % head_dim;
      const float expected = place == 7   ? x[column]
                             : place == 1 ? x[heads * head_dim + column]
                                          : 7.0f;
      CHECK(cache[i] == expected);
    }
  }
}

TEST_CASE("what is written to a cache is what attention reads", "[attention]") {
  const ops::AttentionParams params{2, 1, 8, 1.0f};
  Random random(16);
  const auto v = random.values(8);
  const auto y = run_every_way<float>([&](TestGraph& test) {
    const ops::TensorType cache{DType::f32, {1, 1, 4, 8}};
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
  const Value cache = graph.input("cache", {DType::f16, {2, 2, 9, 8}});
  const Value longer = graph.input("longer", {DType::f16, {2, 2, 10, 8}});
  const Value per_token = graph.input("per_token", {DType::i32, {3}});
  const Value four = graph.input("four", {DType::i32, {4}});
  const ops::AttentionParams good{4, 2, 8, 1.0f};
  check_shape_error([&] { ops::attention(graph, q, cache, longer, per_token, per_token, good); },
                    {"attention", "v_cache", "f16 [2, 2, 10, 8]", "f16 [2, 2, 9, 8]"});
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
      {"attention", "k_cache", "[2, 2, 9, 8]", "[4, slots, context, 8]"});
  check_shape_error(
      [&] {
        ops::attention(graph, q, cache, cache, per_token, per_token, {2, 2, 8, 1.0f});
      },
      {"attention", "q", "[3, 32]", "[3, 16]"});
  check_shape_error([&] { ops::cache_write(graph, q, cache, per_token, per_token); },
                    {"cache_write", "cache", "[2, 2, 9, 8]", "32"});
}
