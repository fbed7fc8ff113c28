// Stages and memory: the planner must join exactly the nodes that need no barrier, and values that
// live at the same time must not share bytes. Ops that only declare are enough for that.
#include <algorithm>
#include <set>

#include "ops/ops.h"
#include "runtime/plan.h"
#include "support/catch.h"

using namespace lockstep;
using namespace lockstep::ops;

namespace {

struct Behaviour {
  Partition::Kind kind = Partition::Kind::columns;
  std::size_t align = 1;
  Reach reach = Reach::own;
  bool follows = false;  // accepts any partition of its producer
  bool replicable = false;
  int alias = -1;
  std::size_t chunk_units = 0;
};

// Copies its first input's type and computes nothing.
class Declared final : public Op {
 public:
  explicit Declared(const Behaviour& behaviour) : behaviour_(behaviour) {}
  std::string_view name() const noexcept override { return "declared"; }
  TensorType infer(std::span<const TensorType> inputs) const override { return inputs[0]; }
  int alias() const noexcept override { return behaviour_.alias; }
  Partition partition(std::span<const TensorType>, const TensorType& output) const override {
    const bool rows = behaviour_.kind == Partition::Kind::rows;
    return {behaviour_.kind, rows ? output.shape.rows() : output.shape.columns(), behaviour_.align};
  }
  bool accepts(const Partition&) const override { return behaviour_.follows; }
  bool replicable() const noexcept override { return behaviour_.replicable; }
  Reach reach(std::size_t) const override { return behaviour_.reach; }
  std::size_t chunk_units(const TensorType&) const noexcept override {
    return behaviour_.chunk_units;
  }
  void run(const Io&) const noexcept override {}

 private:
  Behaviour behaviour_;
};

constexpr Behaviour kMatmul{.kind = Partition::Kind::columns, .align = 8, .reach = Reach::all};
constexpr Behaviour kFollower{.kind = Partition::Kind::rows, .reach = Reach::own, .follows = true};
constexpr Behaviour kNorm{.kind = Partition::Kind::rows, .reach = Reach::own, .replicable = true};

struct Builder {
  Graph graph{quant::Isa::scalar};
  Value input(std::size_t rows = 2, std::size_t columns = 64) {
    return graph.input("x", {DType::f32, {rows, columns}});
  }
  Value add(const Behaviour& behaviour, std::vector<Value> inputs) {
    return graph.add(std::make_unique<Declared>(behaviour), std::move(inputs));
  }
  Plan plan(const PlanOptions& options) { return Plan::make(graph, options); }
  Plan plan(unsigned workers = 4, bool reference = false) {
    return Plan::make(graph, {.workers = workers, .reference = reference});
  }
};

}  // namespace

TEST_CASE("plan: a reader of everything waits, a reader of its own part does not") {
  Builder b;
  const Value x = b.add(kMatmul, {b.input()});
  const Value y = b.add(kFollower, {x});
  const Value z = b.add(kMatmul, {y});
  b.graph.mark_output(z);
  const Plan plan = b.plan();
  REQUIRE(plan.stages().size() == 2);
  REQUIRE(plan.stages()[0].last == 2);
  REQUIRE(plan.nodes()[1].partition == plan.nodes()[0].partition);
  REQUIRE(b.plan(4, true).stages().size() == 3);
}

TEST_CASE("plan: equal splits are not enough when they differ in alignment") {
  Builder b;
  const Value in = b.input();
  const Value x = b.add(kMatmul, {in});
  Behaviour coarse = kMatmul;
  coarse.align = 16;
  const Value y = b.add(coarse, {in});
  REQUIRE(b.plan().stages().size() == 1);  // independent nodes share a stage whatever their splits
  b.add(kFollower, {x, y});                // but nobody can follow both
  REQUIRE(b.plan().stages().size() == 2);
}

TEST_CASE("plan: an op that will not follow its producer's split waits") {
  Builder b;
  Behaviour stubborn = kFollower;
  stubborn.follows = false;
  b.add(stubborn, {b.add(kMatmul, {b.input()})});
  REQUIRE(b.plan().stages().size() == 2);
}

TEST_CASE("plan: small per-token work is replicated, and its readers do not wait") {
  Builder b;
  const Value x = b.add(kMatmul, {b.input()});
  const Value norm = b.add(kNorm, {x});
  const Value y = b.add(kMatmul, {norm});
  const Value z = b.add(kMatmul, {norm});
  b.graph.mark_output(z);
  b.graph.mark_output(y);
  Plan plan = b.plan();
  REQUIRE(plan.stages().size() == 2);
  REQUIRE(plan.nodes()[1].partition.kind == Partition::Kind::replicated);
  std::vector<std::byte> arena(plan.arena_bytes() + 64);
  plan.bind(arena.data());
  REQUIRE(plan.tensor(norm).copy_stride >= 2 * 64 * sizeof(float));

  Builder large;  // too large to repeat: divided by rows, one more barrier
  const Value lx = large.add(kMatmul, {large.input(1024, 64)});
  large.add(kMatmul, {large.add(kNorm, {lx})});
  REQUIRE(large.plan().stages().size() == 3);
}

TEST_CASE("plan: writing in place waits for readers of the old value") {
  Behaviour writer{.kind = Partition::Kind::columns, .reach = Reach::own, .alias = 1};
  Behaviour reader{.kind = Partition::Kind::columns, .reach = Reach::all};
  Builder b;
  const Value x = b.input();
  std::vector<float> memory(2 * 64);
  const Value cache = b.graph.external("cache", make_tensor({DType::f32, {2, 64}}, memory.data()));
  SECTION("a free reader before the write") {
    b.add(reader, {cache});
    b.add(writer, {x, cache});
    REQUIRE(b.plan().stages().size() == 2);
  }
  SECTION("a reader of its own part before the write") {
    b.add({.kind = Partition::Kind::columns, .reach = Reach::own}, {cache});
    b.add(writer, {x, cache});
    REQUIRE(b.plan().stages().size() == 1);
  }
  SECTION("a reader after the write") {
    b.add(reader, {b.add(writer, {x, cache})});
    REQUIRE(b.plan().stages().size() == 2);
  }
  SECTION("the alias uses the external memory") {
    const Value written = b.add(writer, {x, cache});
    Plan plan = b.plan();
    std::vector<std::byte> arena(plan.arena_bytes() + 64);
    plan.bind(arena.data());
    REQUIRE(plan.tensor(written).data == plan.tensor(cache).data);
  }
}

TEST_CASE("plan: values alive together never overlap, values apart share memory") {
  // A chain with side branches of many sizes; lifetimes are recomputed here from the plan itself.
  Builder b;
  std::vector<Value> values{b.input(3, 40)};
  for (int i = 0; i < 60; ++i) {
    const Value a = values[values.size() - 1];
    const Behaviour& behaviour = i % 3 == 0 ? kNorm : kMatmul;
    values.push_back(b.add(behaviour, {a}));
    if (i % 7 == 0) values.push_back(b.add(kMatmul, {a, values[values.size() / 2]}));
  }
  b.graph.mark_output(values.back());
  Plan plan = b.plan(3);
  std::vector<std::byte> arena(plan.arena_bytes() + 64);
  plan.bind(arena.data());

  struct Life {
    std::size_t first = SIZE_MAX, last = 0;
    std::uintptr_t begin = 0, end = 0;
  };
  std::vector<Life> lives(b.graph.values().size());
  std::size_t total = 0;
  for (std::size_t id = 0; id < lives.size(); ++id) {
    const Tensor& tensor = plan.tensor({static_cast<std::uint32_t>(id)});
    const std::size_t copies = tensor.copy_stride ? 3 : 1;
    lives[id].begin = reinterpret_cast<std::uintptr_t>(tensor.data);
    lives[id].end = lives[id].begin + (copies - 1) * tensor.copy_stride + tensor.type.bytes();
    total += lives[id].end - lives[id].begin;
    REQUIRE(tensor.data >= arena.data());
    REQUIRE(lives[id].end <= reinterpret_cast<std::uintptr_t>(arena.data()) + plan.arena_bytes());
  }
  lives[values[0].id].first = 0;
  for (std::size_t stage = 0; stage < plan.stages().size(); ++stage) {
    for (std::size_t i = plan.stages()[stage].first; i < plan.stages()[stage].last; ++i) {
      const auto touch = [&](std::uint32_t id) {
        lives[id].first = std::min(lives[id].first, stage);
        lives[id].last = std::max(lives[id].last, stage);
      };
      for (const std::uint32_t id : plan.nodes()[i].inputs) touch(id);
      touch(plan.nodes()[i].output);
    }
  }
  lives[values.back().id].last = plan.stages().size();
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (std::size_t j = i + 1; j < lives.size(); ++j) {
      const bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      const bool overlap = lives[i].begin < lives[j].end && lives[j].begin < lives[i].end;
      INFO("values " << i << " and " << j);
      REQUIRE_FALSE((together && overlap));
    }
  }
  REQUIRE(plan.arena_bytes() < total / 2);
}

TEST_CASE("plan: nodes that hand parts on form a chain, others do not") {
  Builder b;
  const Value in = b.input();
  const Value norm = b.add(kNorm, {in});
  const Value q = b.add(kMatmul, {norm});
  const Value k = b.add(kMatmul, {norm});
  const Value rotated = b.add(kFollower, {q});
  const Value sum = b.add(kFollower, {k, rotated});
  const Value v = b.add(kMatmul, {norm});
  b.graph.mark_output(sum);
  b.graph.mark_output(v);
  const Plan plan = b.plan();
  REQUIRE(plan.stages().size() == 1);
  const Stage& stage = plan.stages()[0];
  CHECK(stage.replicated == std::vector<std::uint32_t>{0});
  REQUIRE(stage.chains.size() == 2);
  CHECK(stage.chains[0].nodes == std::vector<std::uint32_t>{1, 2, 3, 4});
  CHECK(stage.chains[1].nodes == std::vector<std::uint32_t>{5});
}

TEST_CASE("plan: whoever writes in place stays with the readers of the old value") {
  Builder b;
  const Value x = b.add(kMatmul, {b.input()});
  const Value y = b.add(kMatmul, {x});  // a stage of its own
  const Value z = b.add(kFollower, {y});
  Behaviour in_place = kFollower;
  in_place.alias = 0;
  const Value w = b.add(in_place, {y});
  b.graph.mark_output(z);
  b.graph.mark_output(w);
  const Plan plan = b.plan();
  REQUIRE(plan.stages().size() == 2);
  REQUIRE(plan.stages()[1].chains.size() == 1);
  CHECK(plan.stages()[1].chains[0].nodes == std::vector<std::uint32_t>{1, 2, 3});
}

// Own slices and chunks of a chain, in the order of the extent.
static std::vector<Slice> parts_of(const Stage& stage, std::uint32_t chain) {
  std::vector<Slice> parts;
  for (const Slice& own : stage.chains[chain].own) {
    if (!own.empty()) parts.push_back(own);
  }
  for (const std::vector<Chunk>& chunks : stage.chunks) {
    for (const Chunk& chunk : chunks) {
      if (chunk.chain == chain) parts.push_back(chunk.part);
    }
  }
  std::ranges::sort(parts, {}, &Slice::begin);
  return parts;
}

TEST_CASE("plan: own slices and chunks are everything, once, from panel edge to panel edge") {
  for (const std::size_t columns : {1, 8, 63, 64, 200, 1000, 4097}) {
    for (const std::size_t align : {1, 8, 24}) {
      for (const unsigned workers : {1u, 2u, 3u, 7u}) {
        for (const Schedule schedule :
             {Schedule::automatic, Schedule::static_rows, Schedule::dynamic}) {
          INFO(columns << " by " << align << ", " << workers << " workers");
          Builder b;
          Behaviour matmul = kMatmul;
          matmul.align = align;
          matmul.chunk_units = 16;
          const Value x = b.input(2, columns);
          b.graph.mark_output(b.add(matmul, {x}));
          b.graph.mark_output(b.add(matmul, {x}));
          const Plan plan = b.plan({.workers = workers, .schedule = schedule});
          const Stage& stage = plan.stages().at(0);
          for (std::uint32_t chain = 0; chain < 2; ++chain) {
            std::size_t end = 0;
            for (const Slice& part : parts_of(stage, chain)) {
              REQUIRE(part.begin == end);
              REQUIRE(part.begin % align == 0);
              REQUIRE(part.end > part.begin);
              end = part.end;
            }
            REQUIRE(end == columns);
          }
          if (schedule == Schedule::static_rows || workers == 1) REQUIRE(stage.chunks.empty());
          if (schedule == Schedule::dynamic && workers > 1) REQUIRE_FALSE(stage.chunks.empty());
        }
      }
    }
  }
}

TEST_CASE("plan: chunks are for work that is worth it, on one NUMA node") {
  const auto chunks = [](std::size_t units, unsigned nodes) {
    Builder b;
    Behaviour matmul = kMatmul;
    matmul.chunk_units = units;
    b.graph.mark_output(b.add(matmul, {b.input(2, 2048)}));
    const Plan plan = b.plan({.workers = 2, .numa_nodes = nodes});
    return plan.stages().at(0).chunks;
  };
  CHECK(chunks(0, 1).empty());
  CHECK(chunks(16, 2).empty());
  CHECK(chunks(512, 1).empty());
  const auto some = chunks(16, 1);
  REQUIRE(some.size() == 2);
  CHECK(some[0].size() == 4);
  CHECK(some[0].front().part == Slice{768, 832});
  CHECK(chunks(100, 1).at(0).size() == 2);
}
