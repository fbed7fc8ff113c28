// Stages and chains. A node may join the current stage when everything it reads that was written in
// this stage was written by the same worker: a value divided the same way and read only in its own
// part, or a replicated value. Nodes that hand values on like this form a chain.
#include "runtime/stages.h"

#include <algorithm>

#include "runtime/fusions.h"

namespace lockstep {
namespace {

using ops::Partition;

// Grows one stage after the other. Remembers, per memory root, what the current stage did to it.
class StageBuilder {
 public:
  StageBuilder(const ops::Graph& graph, const PlanOptions& options,
               const std::vector<std::uint32_t>& roots)
      : graph_(graph), options_(options), roots_(roots), touched_(graph.values().size()) {}

  void add(const ops::Node& node) {
    PlannedNode planned;
    planned.op = node.op.get();
    planned.output = node.output.id;
    planned.section = node.section;
    for (ops::Value input : node.inputs) planned.inputs.push_back(input.id);

    const Partition wanted = preferred(node);
    if (options_.reference || !try_join(node, wanted, planned.partition)) {
      staged_.stages.emplace_back().first = staged_.nodes.size();
      planned.partition = wanted;
    }
    leaders_.push_back(staged_.nodes.size());
    remember(node, planned.partition);
    staged_.nodes.push_back(std::move(planned));
    staged_.stages.back().last = staged_.nodes.size();
  }

  StagedNodes finish() {
    for (Stage& stage : staged_.stages) collect_chains(stage);
    return std::move(staged_);
  }

 private:
  // What a memory root saw in the stage `stage`.
  struct Touched {
    std::size_t stage = 0;
    bool written = false;
    bool read_freely = false;  // some reader looks beyond its own part
    bool mixed = false;        // touched under two different partitions
    Partition partition;
    std::vector<std::size_t> nodes;
  };

  Partition preferred(const ops::Node& node) const {
    std::vector<ops::TensorType> inputs;
    for (ops::Value input : node.inputs) inputs.push_back(graph_.type(input));
    const ops::TensorType& output = graph_.type(node.output);
    if (!options_.reference && node.op->replicable() && !graph_.values()[node.output.id].output &&
        output.shape.elements() <= options_.replicate_limit) {
      return {Partition::Kind::replicated, output.shape.rows(), 1};
    }
    return node.op->partition(inputs, output);
  }

  Touched* in_this_stage(std::uint32_t value) {
    Touched& touched = touched_[roots_[value]];
    return touched.stage == staged_.stages.size() && touched.stage != 0 ? &touched : nullptr;
  }

  // Whether the node can run in the current stage, and divided how.
  bool try_join(const ops::Node& node, const Partition& wanted, Partition& chosen) {
    if (staged_.stages.empty()) return false;
    chosen = wanted;
    bool bound = false;  // `chosen` is dictated by a producer in this stage
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Touched* touched = in_this_stage(node.inputs[i].id);
      if (!touched || !touched->written) continue;
      if (is_unfused(node.inputs[i], node)) return false;
      if (touched->partition.kind == Partition::Kind::replicated) continue;  // reads its own copy
      if (touched->mixed || node.op->reach(i) != ops::Reach::own) return false;
      if (bound && chosen != touched->partition) return false;
      chosen = touched->partition;
      bound = true;
    }
    if (bound && chosen != wanted && !node.op->accepts(chosen)) return false;
    return may_write(node, chosen);
  }

  bool is_unfused(ops::Value input, const ops::Node& consumer) const {
    const ops::ValueInfo& info = graph_.values()[input.id];
    if (options_.unfused.empty() || info.kind != ops::ValueInfo::Kind::computed) return false;
    const Fusion* fusion =
        find_fusion(graph_.nodes()[info.producer].op->name(), consumer.op->name());
    return fusion != nullptr &&
           std::ranges::find(options_.unfused, fusion->name) != options_.unfused.end();
  }

  // An in-place op must not overwrite what another worker may still be reading in this stage.
  bool may_write(const ops::Node& node, const Partition& partition) {
    if (node.op->alias() < 0) return true;
    const Touched* touched = in_this_stage(node.output.id);
    if (!touched) return true;
    return !touched->read_freely && !touched->mixed && touched->partition == partition;
  }

  // The node under construction uses the memory of `value`.
  void touch(std::uint32_t value, const Partition& partition, bool write, bool freely) {
    const std::size_t node = staged_.nodes.size();
    Touched& touched = touched_[roots_[value]];
    if (touched.stage != staged_.stages.size()) {
      touched = Touched();
      touched.stage = staged_.stages.size();
      touched.partition = partition;
    } else {
      if (touched.partition != partition) touched.mixed = true;
      // Readers among themselves are free; whoever follows a writer, or writes, is not.
      if (write || touched.written) {
        for (const std::size_t other : touched.nodes) unite(other, node);
      }
    }
    // A value written earlier in the stage keeps its writer's partition for later readers.
    if (write) touched.partition = partition;
    touched.written |= write;
    touched.read_freely |= freely;
    touched.nodes.push_back(node);
  }

  void remember(const ops::Node& node, const Partition& partition) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Touched* touched = in_this_stage(node.inputs[i].id);
      const bool replicated =
          touched && touched->written && touched->partition.kind == Partition::Kind::replicated;
      if (replicated) continue;  // each worker reads its own copy: no conflict with anybody
      const bool freely =
          node.op->reach(i) != ops::Reach::own || partition.kind == Partition::Kind::replicated;
      touch(node.inputs[i].id, partition, false, freely);
    }
    touch(node.output.id, partition, true, false);
  }

  // Union-find over nodes; the first node of a chain leads it.
  std::size_t leader(std::size_t node) const {
    while (leaders_[node] != node) node = leaders_[node];
    return node;
  }
  void unite(std::size_t a, std::size_t b) {
    const std::size_t one = leader(a);
    const std::size_t other = leader(b);
    leaders_[std::max(one, other)] = std::min(one, other);
  }

  void collect_chains(Stage& stage) const {
    std::vector<std::size_t> leads;  // by chain
    for (std::size_t i = stage.first; i < stage.last; ++i) {
      const auto node = static_cast<std::uint32_t>(i);
      if (staged_.nodes[i].partition.kind == Partition::Kind::replicated) {
        stage.replicated.push_back(node);
        continue;
      }
      const std::size_t lead = leader(i);
      const auto at = static_cast<std::size_t>(std::ranges::find(leads, lead) - leads.begin());
      if (at == leads.size()) {
        leads.push_back(lead);
        stage.chains.emplace_back().partition = staged_.nodes[i].partition;
      }
      stage.chains[at].nodes.push_back(node);
    }
  }

  const ops::Graph& graph_;
  const PlanOptions& options_;
  const std::vector<std::uint32_t>& roots_;
  std::vector<Touched> touched_;
  std::vector<std::size_t> leaders_;  // by node
  StagedNodes staged_;
};

}  // namespace

StagedNodes build_stages(const ops::Graph& graph, const PlanOptions& options,
                         const std::vector<std::uint32_t>& roots) {
  StageBuilder builder(graph, options, roots);
  for (const ops::Node& node : graph.nodes()) builder.add(node);
  return builder.finish();
}

}  // namespace lockstep
