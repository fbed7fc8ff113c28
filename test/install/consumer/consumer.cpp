// Uses every layer of the installed package: an engine, and a graph of its own run by an executor.
#include <lockstep/lockstep.h>

#include <iostream>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "runtime/plan.h"
#include "topology/machine.h"
#include "topology/node_memory.h"
#include "topology/placement.h"

int main() {
  using namespace lockstep;
  const Engine engine = Engine::create({.threads = 1});
  if (engine.threads() != 1 || engine.machine().cores.empty()) return 1;

  ops::Graph graph(quant::choose_isa(quant::built_isas() & quant::detect_isas(), ""));
  const ops::TensorType row{ops::DType::f32, {1, 3}};
  const ops::Value x = graph.input("x", row);
  const ops::Value y = graph.input("y", row);
  const ops::Value sum = ops::add(graph, x, y);
  graph.mark_output(sum);

  Plan plan = Plan::make(graph, {});
  const topology::NodeBuffer arena(plan.arena_bytes());
  plan.bind(arena.data());
  const float x_values[] = {1.0f, -1.0f, 4.0f};
  const float y_values[] = {0.5f, -1.0f, 3.0f};
  for (int i = 0; i < 3; ++i) {
    plan.tensor(x).row<float>(0)[i] = x_values[i];
    plan.tensor(y).row<float>(0)[i] = y_values[i];
  }
  Executor executor(topology::Placement::make(engine.machine(), 1, ""));
  executor.run(plan, nullptr);
  const float* const z = plan.tensor(sum).row<float>(0);
  std::cout << z[0] << ' ' << z[1] << ' ' << z[2] << '\n';
}
