// The team: everybody takes part, barriers separate stages, work follows the team that was granted.
#include <atomic>
#include <numeric>
#include <set>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "runtime/openmp_runtime.h"
#include "support/catch.h"
#include "support/scoped_variable.h"
#include "topology/binding.h"
#include "topology/machine.h"

using namespace lockstep;
using lockstep::test::ScopedVariable;

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

TEST_CASE("executor: many runs in one region are the runs one by one") {
  constexpr std::size_t kWidth = 37;
  for (const unsigned threads : {1u, 2u, 4u, 7u}) {
    Executor executor(placement(threads));
    // Plans of different lengths, an odd and an even number of stages.
    std::vector<std::unique_ptr<ops::Graph>> graphs;
    std::vector<Plan> plans;
    std::vector<ops::Value> inputs, outputs;
    std::vector<std::vector<std::byte>> arenas;
    for (const int nodes : {1, 2, 7}) {
      ops::Graph& graph = *graphs.emplace_back(std::make_unique<ops::Graph>(quant::Isa::scalar));
      inputs.push_back(graph.input("x", {ops::DType::f32, {1, kWidth}}));
      ops::Value x = inputs.back();
      for (int i = 0; i < nodes; ++i) x = graph.add(std::make_unique<SumAll>(), {x});
      graph.mark_output(x);
      outputs.push_back(x);
      plans.push_back(Plan::make(graph, {.workers = executor.workers()}));
      plans.back().bind(arenas.emplace_back(plans.back().arena_bytes() + 64).data());
    }
    int runs = 0;
    std::size_t at = 0;
    float value = 3.0f;
    std::uint64_t barriers = 0;
    const auto fill = [&] {
      std::fill_n(plans[at].tensor(inputs[at]).row<float>(0), kWidth, value);
    };
    fill();
    const auto next = [&](const RunResult& result) -> Job {
      barriers += result.barriers;
      value = plans[at].tensor(outputs[at]).row<float>(0)[kWidth - 1];
      if (++runs == 300) return {};
      at = static_cast<std::size_t>(runs) % 3;
      fill();
      return {&plans[at]};
    };
    const RunResult last = executor.run_each({&plans[0]}, nullptr, next);
    CHECK(runs == 300);
    CHECK(last.barriers == 7);
    CHECK_FALSE(last.cancelled);
    CHECK(barriers == 100 * (1 + 2 + 7));
    CHECK(value == 3.0f + 100 * (1 + 2 + 7));

    // Cancelled in the fourth run: nobody is asked for a fifth.
    std::atomic<bool> cancel{false};
    runs = 0;
    at = 0;
    fill();
    const RunResult cancelled =
        executor.run_each({&plans[0]}, &cancel, [&](const RunResult& result) -> Job {
          if (runs == 2) cancel = true;
          return next(result);
        });
    CHECK(cancelled.cancelled);
    CHECK(cancelled.barriers == 1);
    CHECK(runs == 3);
    CHECK_FALSE(executor.run(plans[1], nullptr).cancelled);
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
#if defined(LOCKSTEP_EXPECTED_OPENMP)
  REQUIRE(loaded_openmp_runtimes() == std::vector<std::string>{LOCKSTEP_EXPECTED_OPENMP});
#endif
  REQUIRE(loaded_openmp_runtimes().size() <= 1);
  REQUIRE(openmp_runtime_name().find("OpenMP 20") != std::string::npos);
}

TEST_CASE("the wait policy is what the environment says") {
  struct Case {
    const char *policy, *gnu, *llvm;
    std::string expected_gnu, expected_llvm;
  };
  const bool gnu = !loaded_openmp_runtimes().empty() && loaded_openmp_runtimes()[0] == "libgomp";
  for (const Case& c :
       {Case{"", "", "", "spins 300000 rounds, then sleeps", "spins 200 ms, then sleeps"},
        Case{"PASSIVE", "", "", "sleeps", "sleeps"}, Case{"active", "", "", "spins", "spins"},
        Case{"active", "1000", "50", "spins 1000 rounds, then sleeps", "spins 50 ms, then sleeps"},
        Case{"", "7", "20us", "spins 7 rounds, then sleeps", "spins 20us, then sleeps"},
        Case{"", "INFINITY", "infinite", "spins", "spins"}}) {
    const ScopedVariable policy("OMP_WAIT_POLICY", c.policy);
    const ScopedVariable spins("GOMP_SPINCOUNT", c.gnu);
    const ScopedVariable time("KMP_BLOCKTIME", c.llvm);
    CHECK(openmp_wait_policy() == (gnu ? c.expected_gnu : c.expected_llvm));
  }
}
