// A graph of one's own: build values with ops functions, plan, run, read the result.
#include <vector>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "support/catch.h"
#include "topology/machine.h"

using namespace lockstep;

TEST_CASE("quickstart: a graph of one's own") {
  Executor executor(topology::Placement::make(topology::Machine::detect(), 2, ""));
  ops::Graph graph(quant::Isa::scalar);
  const ops::Value gate = graph.input("gate", {ops::DType::f32, {1, 3}});
  const ops::Value up = graph.input("up", {ops::DType::f32, {1, 3}});
  const ops::Value out = ops::add(graph, ops::mul(graph, gate, up), up);
  graph.mark_output(out);
  Plan plan = Plan::make(graph, {.workers = executor.workers()});
  std::vector<std::byte> arena(plan.arena_bytes());
  plan.bind(arena.data());
  for (std::size_t i = 0; i < 3; ++i) {
    plan.tensor(gate).row<float>(0)[i] = 2.0f;
    plan.tensor(up).row<float>(0)[i] = static_cast<float>(i);
  }
  REQUIRE(executor.run(plan, nullptr).barriers == plan.stages().size());
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(plan.tensor(out).row<float>(0)[i] == 3.0f * static_cast<float>(i));
  }
}
