// A graph with every operator, run by real teams: the plan with all fusions, without any, and with
// chunks everywhere, on 1 to 4 threads, gives one set of bits.
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "support/catch.h"
#include "support/packed_matrix.h"
#include "support/random.h"
#include "support/random_rows.h"
#include "topology/machine.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;
using quant::Format;

namespace {

constexpr std::size_t kTokens = 5, kHeads = 4, kKvHeads = 2, kHeadDim = 32;
constexpr std::size_t kWidth = kHeads * kHeadDim, kKvWidth = kKvHeads * kHeadDim, kInner = 160;
constexpr std::size_t kExperts = 4, kUsed = 2, kVocabulary = 99, kContext = 16;

// What outlives the graph.
class Memory {
 public:
  const ops::ShardedMatrix& matrix(Format format, quant::Isa isa, std::size_t rows,
                                   std::size_t columns) {
    const auto file = random_rows(quant::traits(format), rows, columns, random_);
    packed_.push_back(
        std::make_unique<Packed>(pack(*ops::find_kernel(format, isa), file, rows, columns, 3)));
    return packed_.back()->matrix;
  }
  std::span<const ops::ShardedMatrix> experts(Format format, quant::Isa isa, std::size_t rows,
                                              std::size_t columns) {
    auto& list = *lists_.emplace_back(std::make_unique<std::vector<ops::ShardedMatrix>>());
    for (std::size_t e = 0; e < kExperts; ++e) list.push_back(matrix(format, isa, rows, columns));
    return list;
  }
  ops::Tensor values(const ops::Shape& shape, DType dtype = DType::f32) {
    auto& values = *floats_.emplace_back(
        std::make_unique<std::vector<float>>(random_.values(shape.elements())));
    if (dtype == DType::f16) std::memset(values.data(), 0, values.size() * sizeof(float));
    return ops::make_tensor({dtype, shape}, values.data());
  }

 private:
  Random random_{71};
  std::vector<std::unique_ptr<Packed>> packed_;
  std::vector<std::unique_ptr<std::vector<ops::ShardedMatrix>>> lists_;
  std::vector<std::unique_ptr<std::vector<float>>> floats_;
};

struct Everything {
  ops::Graph graph;
  Memory memory;
  Value tokens, positions, slots;
  std::vector<Value> outputs;

  explicit Everything(quant::Isa isa) : graph(isa) {
    tokens = graph.input("tokens", {DType::i32, {kTokens}});
    positions = graph.input("positions", {DType::i32, {kTokens}});
    slots = graph.input("slots", {DType::i32, {kTokens}});
    Value x = ops::embed(graph, table(), tokens);
    x = attend(x);
    x = ops::add(graph, x, feed_forward(x));
    x = ops::add(graph, x, mixture(x));
    odds_and_ends(x);
    const Value last = graph.input("rows", {DType::i32, {1}});
    rows = last;
    const Value norm =
        ops::rms_norm(graph, ops::gather_rows(graph, x, last), weights(kWidth), 1e-5f);
    const Value logits = ops::matmul(graph, norm, matrix(Format::q8_0, kVocabulary, kWidth));
    keep(logits);
    keep(ops::argmax(graph, logits));
  }

  Value rows;

 private:
  void keep(Value value) {
    graph.mark_output(value);
    outputs.push_back(value);
  }
  const ops::ShardedMatrix& matrix(Format format, std::size_t m, std::size_t k) {
    return memory.matrix(format, graph.isa(), m, k);
  }
  Value weights(std::size_t n) { return graph.external("weights", memory.values({n})); }
  ops::RowTable table() {
    const ops::Tensor rows_of = memory.values({kVocabulary, kWidth});
    return {.format = Format::f32, .rows = kVocabulary, .columns = kWidth, .data = rows_of.data};
  }

  Value attend(Value x) {
    ops::RopeParams rope{.head_dim = kHeadDim, .rotary_dims = kHeadDim, .position_scale = 0.5};
    rope.yarn.original_context = 8;
    const Value angles = ops::rope_angles(graph, positions, rope);
    const Value norm = ops::layer_norm(graph, x, weights(kWidth), weights(kWidth), 1e-5f);
    Value q = ops::matmul(graph, norm, matrix(Format::q4_0, kWidth, kWidth));
    Value k = ops::matmul(graph, norm, matrix(Format::q4_0, kKvWidth, kWidth));
    const Value v = ops::add(
        graph, ops::matmul(graph, norm, matrix(Format::q4_0, kKvWidth, kWidth)), weights(kKvWidth));
    q = ops::hadamard(graph, ops::rope(graph, q, angles, rope), kHeadDim);
    k = ops::hadamard(graph, ops::rope(graph, k, angles, rope), kHeadDim);
    const auto cache = [&](Value value) {
      const ops::Tensor at = memory.values({kKvHeads, 2, kContext, kHeadDim}, DType::f16);
      return ops::cache_write(graph, value, graph.external("cache", at), positions, slots);
    };
    const ops::AttentionParams params{kHeads, kKvHeads, kHeadDim, 0.2f, 3, 20.0f};
    const Value mixed = ops::attention(graph, q, cache(k), cache(v), positions, slots, params);
    return ops::add(graph, ops::matmul(graph, mixed, matrix(Format::q8_0, kWidth, kWidth)), x);
  }

  Value feed_forward(Value x) {
    const Value norm = ops::rms_norm(graph, x, weights(kWidth), 1e-5f);
    const Value gate = ops::matmul(graph, norm, matrix(Format::q4_0, kInner, kWidth));
    const Value up = ops::matmul(graph, norm, matrix(Format::q4_0, kInner, kWidth));
    const Value hidden = ops::add(graph, ops::swiglu(graph, gate, up), ops::geglu(graph, gate, up));
    return ops::matmul(graph, hidden, matrix(Format::f16, kWidth, kInner));
  }

  Value mixture(Value x) {
    const Value norm = ops::rms_norm(graph, x, weights(kWidth), 1e-5f);
    const Value scores = ops::matmul(graph, norm, matrix(Format::f32, kExperts, kWidth));
    const Value ids = ops::top_k(graph, scores, kUsed);
    const Value parts = ops::softmax(graph, ops::gather_columns(graph, scores, ids));
    const auto experts = [&](std::size_t m, std::size_t k) {
      return memory.experts(Format::q8_0, graph.isa(), m, k);
    };
    const Value gate = ops::expert_matmul(graph, norm, experts(kInner, kWidth), ids);
    const Value up = ops::expert_matmul(graph, norm, experts(kInner, kWidth), ids);
    const Value hidden = ops::swiglu(graph, gate, up);
    return ops::weighted_sum(graph, ops::expert_matmul(graph, hidden, experts(kWidth, kInner), ids),
                             parts);
  }

  void odds_and_ends(Value x) {
    const Value centred = ops::add(graph, x, ops::scale(graph, ops::mean(graph, x), -1.0f));
    const Value bounded = ops::soft_cap(graph, ops::gelu(graph, centred), 2.0f);
    const Value gated = ops::mul(graph, ops::silu(graph, bounded), ops::sigmoid(graph, bounded));
    const Value smooth = ops::tanh(graph, ops::exp(graph, ops::relu(graph, gated)));
    keep(ops::sum(graph, smooth));
    keep(ops::cast(graph, smooth, DType::f16));
    keep(ops::column_squares(graph, smooth));
  }
};

std::vector<std::byte> run(unsigned threads, quant::Isa isa, bool reference, Schedule schedule) {
  Executor executor(topology::Placement::make(topology::Machine::detect(), threads, ""));
  Everything all(isa);
  Plan plan = Plan::make(
      all.graph, {.workers = executor.workers(), .schedule = schedule, .reference = reference});
  std::vector<std::uint64_t> arena(plan.arena_bytes() / 8 + 16);
  void* start = arena.data();
  std::size_t space = arena.size() * 8;
  plan.bind(static_cast<std::byte*>(std::align(64, plan.arena_bytes(), start, space)));
  const auto fill = [&](Value value, const std::vector<std::int32_t>& values) {
    std::copy(values.begin(), values.end(), plan.tensor(value).row<std::int32_t>(0));
  };
  std::vector<std::byte> result;
  // Twice: a run leaves nothing behind that changes the next.
  for (int round = 0; round < 2; ++round) {
    result.clear();
    fill(all.tokens, {3, 98, 0, 41, 7});
    fill(all.positions, {0, 1, 2, 3, 0});
    fill(all.slots, {0, 0, 0, 0, 1});
    fill(all.rows, {3});
    REQUIRE(executor.run(plan, nullptr).barriers == plan.stages().size());
    for (const Value output : all.outputs) {
      const ops::Tensor& tensor = plan.tensor(output);
      result.insert(result.end(), tensor.data, tensor.data + tensor.type.bytes());
    }
  }
  return result;
}

}  // namespace

TEST_CASE("every operator: one set of bits for any plan, team and instruction set") {
  const std::vector<std::byte> expected = run(1, quant::Isa::scalar, true, Schedule::automatic);
  CHECK(expected.size() == 4 * kTokens + 2 * kTokens * kWidth + 4 * kWidth + 4 * kVocabulary + 4);
  for (const quant::Isa isa : quant::kAllIsas) {
    if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
    for (unsigned threads = 1; threads <= 4; ++threads) {
      INFO(quant::name_of(isa) << ", threads " << threads);
      CHECK(run(threads, isa, true, Schedule::automatic) == expected);
      CHECK(run(threads, isa, false, Schedule::automatic) == expected);
      CHECK(run(threads, isa, false, Schedule::static_rows) == expected);
      CHECK(run(threads, isa, false, Schedule::dynamic) == expected);
    }
  }
}
