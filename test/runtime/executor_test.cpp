// The team: everybody takes part, barriers separate stages, work follows the team that was granted.
#include <atomic>
#include <numeric>
#include <set>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "runtime/openmp_runtime.h"
#include "support/catch.h"
#include "topology/binding.h"
#include "topology/machine.h"

using namespace lockstep;

namespace {

topology::Placement placement(unsigned threads) {
  return topology::Placement::make(topology::Machine::detect(), threads, "");
}

// out[i] = sum over all of in, so that a missing barrier shows as a wrong sum.
class SumAll final : public ops::Op {
 public:
  std::string_view name() const noexcept override { return "sum_all"; }
  ops::TensorType infer(std::span<const ops::TensorType> inputs) const override {
    return inputs[0];
  }
  ops::Partition partition(std::span<const ops::TensorType>,
                           const ops::TensorType& output) const override {
    return {ops::Partition::Kind::columns, output.shape.columns(), 1};
  }
  ops::Reach reach(std::size_t) const override { return ops::Reach::all; }
  void run(const ops::Io& io) const noexcept override {
    const float* in = io.inputs[0].row<const float>(0);
    float sum = 0.0f;
    for (std::size_t i = 0; i < io.inputs[0].columns(); ++i) sum += in[i];
    for (std::size_t i = io.part.begin; i < io.part.end; ++i) {
      io.output.row<float>(0)[i] = sum / static_cast<float>(io.inputs[0].columns()) + 1.0f;
    }
  }
};

}  // namespace

TEST_CASE("executor: every worker runs once, with its own lane") {
  for (const unsigned threads : {1u, 2u, 3u, 5u}) {
    Executor executor(placement(threads));
    std::vector<std::atomic<int>> calls(threads);
    std::atomic<unsigned> team{0};
    executor.team([&](const ops::Lane& lane) noexcept {
      ++calls[lane.worker];
      team = lane.workers;
    });
    REQUIRE(team.load() == executor.workers());
    for (unsigned worker = 0; worker < executor.workers(); ++worker) {
      REQUIRE(calls[worker].load() == 1);
      REQUIRE(executor.reports()[worker].present);
    }
  }
}

TEST_CASE("executor: a barrier separates stages, whatever the team") {
  constexpr std::size_t kWidth = 37;
  constexpr int kNodes = 200;
  for (const unsigned threads : {1u, 2u, 4u, 7u}) {
    Executor executor(placement(threads));
    ops::Graph graph(quant::Isa::scalar);
    const ops::Value input = graph.input("x", {ops::DType::f32, {1, kWidth}});
    ops::Value x = input;
    for (int i = 0; i < kNodes; ++i) x = graph.add(std::make_unique<SumAll>(), {x});
    graph.mark_output(x);
    Plan plan = Plan::make(graph, {.workers = executor.workers()});
    std::vector<std::byte> memory(plan.arena_bytes() + 64);
    plan.bind(memory.data());
    for (int round = 0; round < 5; ++round) {
      std::fill_n(plan.tensor(input).row<float>(0), kWidth, 3.0f);
      const RunResult result = executor.run(plan, nullptr);
      REQUIRE(result.barriers == kNodes);
      REQUIRE_FALSE(result.cancelled);
      for (std::size_t i = 0; i < kWidth; ++i) {
        REQUIRE(plan.tensor(x).row<float>(0)[i] == 3.0f + kNodes);
      }
    }
    const std::atomic<bool> cancel{true};
    const RunResult cancelled = executor.run(plan, &cancel);
    REQUIRE(cancelled.cancelled);
    REQUIRE(cancelled.barriers == 1);
  }
}

TEST_CASE("executor: the calling thread gets its affinity back") {
  const std::vector<unsigned> before = topology::affinity_mask();
  {
    Executor executor(placement(1));
    Executor second(placement(1));
  }
  REQUIRE(topology::affinity_mask() == before);
  {
    Executor executor(placement(1));
    Executor::release_this_thread();
    REQUIRE(topology::affinity_mask() == before);
  }
}

TEST_CASE("the OpenMP runtime is named, and there is only one") {
  REQUIRE(loaded_openmp_runtimes().size() <= 1);
  REQUIRE(openmp_runtime_name().find("OpenMP 20") != std::string::npos);
}
