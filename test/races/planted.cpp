// A missing barrier on purpose, for the test of the test: an op that says it reads its own part
// only and reads everything. The planner believes it and puts it into the stage of its producer.
#include <cstdio>
#include <vector>

#include "ops/ops.h"
#include "runtime/executor.h"
#include "topology/machine.h"

namespace {

using namespace lockstep;

class Liar final : public ops::Op {
 public:
  std::string_view name() const noexcept override { return "liar"; }
  ops::TensorType infer(std::span<const ops::TensorType> inputs) const override {
    return inputs[0];
  }
  ops::Partition partition(std::span<const ops::TensorType>,
                           const ops::TensorType& output) const override {
    return {ops::Partition::Kind::columns, output.shape.columns(), 1};
  }
  ops::Reach reach(std::size_t) const override { return ops::Reach::own; }
  void run(const ops::Io& io) const noexcept override {
    const float* const in = io.inputs[0].row<const float>(0);
    float sum = 0.0f;
    for (std::size_t i = 0; i < io.inputs[0].columns(); ++i) sum += in[i];
    for (std::size_t i = io.part.begin; i < io.part.end; ++i) io.output.row<float>(0)[i] = sum;
  }
};

}  // namespace

int main() {
  Executor executor(topology::Placement::make(topology::Machine::detect(), 2, ""));
  ops::Graph graph(quant::Isa::scalar);
  const ops::Value input = graph.input("x", {ops::DType::f32, {1, 4096}});
  ops::Value x = input;
  for (int i = 0; i < 4; ++i) x = graph.add(std::make_unique<Liar>(), {x});
  graph.mark_output(x);
  Plan plan = Plan::make(graph, {.workers = executor.workers()});
  std::vector<std::byte> arena(plan.arena_bytes() + 64);
  plan.bind(arena.data());
  for (int round = 0; round < 20; ++round) executor.run(plan, nullptr);
  std::printf("%u workers, %zu stages\n", executor.workers(), plan.stages().size());
}
