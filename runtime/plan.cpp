// Planning: stages first, then lifetimes in stages, then addresses.
#include "runtime/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

namespace lockstep {
namespace {

constexpr std::size_t kAlignment =
    128;  // two cache lines: the adjacent-line prefetcher shares pairs

constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Follows in-place ops to the value that owns the memory.
std::vector<std::uint32_t> find_roots(const ops::Graph& graph) {
  std::vector<std::uint32_t> roots(graph.values().size());
  std::iota(roots.begin(), roots.end(), 0u);
  for (const ops::Node& node : graph.nodes()) {
    const int alias = node.op->alias();
    if (alias >= 0) roots[node.output.id] = roots[node.inputs[static_cast<std::size_t>(alias)].id];
  }
  return roots;
}

// Grows one stage after the other. Remembers, per memory root, what the current stage did to it.
class StageBuilder {
 public:
  StageBuilder(const ops::Graph& graph, const PlanOptions& options,
               const std::vector<std::uint32_t>& roots)
      : graph_(graph), options_(options), roots_(roots), touched_(graph.values().size()) {}

  PlannedNode plan(const ops::Node& node) {
    PlannedNode planned;
    planned.op = node.op.get();
    planned.output = node.output.id;
    for (ops::Value input : node.inputs) planned.inputs.push_back(input.id);

    const ops::Partition wanted = preferred(node);
    if (options_.reference || !try_join(node, wanted, planned.partition)) {
      stage_begins_.push_back(node_count_);
      ++stage_;
      planned.partition = wanted;
    }
    remember(node, planned.partition);
    ++node_count_;
    return planned;
  }

  std::vector<Stage> stages() const {
    std::vector<Stage> result;
    for (std::size_t i = 0; i < stage_begins_.size(); ++i) {
      const std::size_t end = i + 1 < stage_begins_.size() ? stage_begins_[i + 1] : node_count_;
      result.push_back({stage_begins_[i], end});
    }
    return result;
  }

 private:
  // What a memory root saw in the stage `stage`.
  struct Touched {
    std::size_t stage = 0;
    bool written = false;
    bool read_freely = false;  // some reader looks beyond its own part
    bool mixed = false;        // touched under two different partitions
    ops::Partition partition;
  };

  ops::Partition preferred(const ops::Node& node) const {
    const std::vector<ops::TensorType> inputs = input_types(node);
    const ops::TensorType& output = graph_.type(node.output);
    ops::Partition partition = node.op->partition(inputs, output);
    if (!options_.reference && node.op->replicable() && !graph_.values()[node.output.id].output &&
        output.shape.elements() <= options_.replicate_limit) {
      partition = {ops::Partition::Kind::replicated, output.shape.rows(), 1};
    }
    return partition;
  }

  std::vector<ops::TensorType> input_types(const ops::Node& node) const {
    std::vector<ops::TensorType> types;
    for (ops::Value input : node.inputs) types.push_back(graph_.type(input));
    return types;
  }

  const Touched* in_this_stage(std::uint32_t value) const {
    const Touched& touched = touched_[roots_[value]];
    return touched.stage == stage_ && stage_ != 0 ? &touched : nullptr;
  }

  // Whether the node can run in the current stage, and divided how.
  bool try_join(const ops::Node& node, const ops::Partition& wanted, ops::Partition& chosen) const {
    if (stage_ == 0) return false;
    chosen = wanted;
    bool bound = false;  // `chosen` is dictated by a producer in this stage
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Touched* touched = in_this_stage(node.inputs[i].id);
      if (!touched || !touched->written) continue;
      if (touched->partition.kind == ops::Partition::Kind::replicated)
        continue;  // reads its own copy
      if (touched->mixed || node.op->reach(i) != ops::Reach::own) return false;
      if (bound && chosen != touched->partition) return false;
      chosen = touched->partition;
      bound = true;
    }
    if (bound && chosen != wanted && !node.op->accepts(chosen)) return false;
    return may_write(node, chosen);
  }

  // An in-place op must not overwrite what another worker may still be reading in this stage.
  bool may_write(const ops::Node& node, const ops::Partition& partition) const {
    if (node.op->alias() < 0) return true;
    const Touched* touched = in_this_stage(node.output.id);
    if (!touched) return true;
    return !touched->read_freely && !touched->mixed && touched->partition == partition;
  }

  void touch(std::uint32_t value, const ops::Partition& partition, bool write, bool freely) {
    Touched& touched = touched_[roots_[value]];
    if (touched.stage != stage_) {
      touched = Touched{stage_, false, false, false, partition};
    } else if (touched.partition != partition) {
      touched.mixed = true;
    }
    // A value written earlier in the stage keeps its writer's partition for later readers.
    if (write) touched.partition = partition;
    touched.written |= write;
    touched.read_freely |= freely;
  }

  void remember(const ops::Node& node, const ops::Partition& partition) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Touched* touched = in_this_stage(node.inputs[i].id);
      const bool replicated = touched && touched->written &&
                              touched->partition.kind == ops::Partition::Kind::replicated;
      if (replicated) continue;  // each worker reads its own copy: no conflict with anybody
      const bool freely = node.op->reach(i) != ops::Reach::own ||
                          partition.kind == ops::Partition::Kind::replicated;
      touch(node.inputs[i].id, partition, false, freely);
    }
    touch(node.output.id, partition, true, false);
  }

  const ops::Graph& graph_;
  const PlanOptions& options_;
  const std::vector<std::uint32_t>& roots_;
  std::vector<Touched> touched_;
  std::vector<std::size_t> stage_begins_;
  std::size_t stage_ = 0;  // 1-based number of the current stage
  std::size_t node_count_ = 0;
};

}  // namespace

Plan Plan::make(const ops::Graph& graph, const PlanOptions& options) {
  Plan plan;
  plan.workers_ = std::max(1u, options.workers);
  plan.roots_ = find_roots(graph);
  StageBuilder builder(graph, options, plan.roots_);
  for (const ops::Node& node : graph.nodes()) {
    if (node.inputs.size() > kMaxInputs) throw std::logic_error("an op has too many inputs");
    plan.nodes_.push_back(builder.plan(node));
    plan.weight_bytes_ += node.op->weight_bytes();
  }
  plan.stages_ = builder.stages();
  plan.place_values(graph, plan.roots_);
  return plan;
}

void Plan::place_values(const ops::Graph& graph, const std::vector<std::uint32_t>& roots) {
  const auto& values = graph.values();
  placed_.resize(values.size());
  tensors_.resize(values.size());
  for (std::uint32_t id = 0; id < values.size(); ++id) {
    const bool external = values[id].kind == ops::ValueInfo::Kind::external;
    tensors_[id] = external ? values[id].memory : ops::make_tensor(values[id].type, nullptr);
    if (roots[id] != id || external) continue;
    placed_[id].in_arena = true;
    placed_[id].bytes = align_up(std::max<std::size_t>(1, values[id].type.bytes()));
    placed_[id].first_stage = SIZE_MAX;
  }

  std::size_t scratch = 0;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    for (std::size_t i = stages_[stage].first; i < stages_[stage].last; ++i) {
      const PlannedNode& node = nodes_[i];
      if (node.partition.kind == ops::Partition::Kind::replicated) {
        tensors_[node.output].copy_stride = placed_[node.output].bytes;
        placed_[node.output].bytes *= workers_;
      }
      std::vector<ops::TensorType> types;
      for (std::uint32_t input : node.inputs) {
        types.push_back(values[input].type);
        Placed& placed = placed_[roots[input]];
        placed.last_stage = stage;
        if (values[roots[input]].kind == ops::ValueInfo::Kind::input) placed.first_stage = 0;
      }
      Placed& out = placed_[roots[node.output]];
      out.first_stage = std::min(out.first_stage, stage);
      out.last_stage = std::max(out.last_stage, stage);
      scratch =
          std::max(scratch, node.op->scratch_bytes(types, values[node.output].type, workers_));
    }
  }

  std::vector<std::uint32_t> order;
  for (std::uint32_t id = 0; id < values.size(); ++id) {
    Placed& placed = placed_[id];
    if (!placed.in_arena) continue;
    if (placed.first_stage == SIZE_MAX) placed.first_stage = 0;  // an input that nobody reads
    order.push_back(id);
  }
  for (std::uint32_t id = 0; id < values.size(); ++id) {
    if (values[id].output) placed_[roots[id]].last_stage = stages_.size();
  }
  pack_arena(std::move(order));
  scratch_offset_ = arena_bytes_;
  scratch_stride_ = align_up(scratch);
  arena_bytes_ += scratch_stride_ * workers_;
}

// Largest first, each at the lowest offset that is free for its whole life.
void Plan::pack_arena(std::vector<std::uint32_t> order) {
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return placed_[a].bytes > placed_[b].bytes;
  });
  std::vector<std::uint32_t> by_offset;  // already placed, ascending offset
  for (std::uint32_t id : order) {
    Placed& value = placed_[id];
    std::size_t offset = 0;
    for (std::uint32_t other_id : by_offset) {
      const Placed& other = placed_[other_id];
      const bool together =
          value.first_stage <= other.last_stage && other.first_stage <= value.last_stage;
      if (!together || other.offset + other.bytes <= offset) continue;
      if (other.offset >= offset + value.bytes) break;
      offset = other.offset + other.bytes;
    }
    value.offset = offset;
    arena_bytes_ = std::max(arena_bytes_, offset + value.bytes);
    const auto at = std::lower_bound(
        by_offset.begin(), by_offset.end(), offset,
        [&](std::uint32_t other, std::size_t key) { return placed_[other].offset < key; });
    by_offset.insert(at, id);
  }
}

void Plan::bind(std::byte* arena) noexcept {
  arena_ = arena;
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    const std::uint32_t root = roots_[id];
    if (placed_[root].in_arena) {
      tensors_[id].data = arena + placed_[root].offset;
    } else if (root != id) {
      tensors_[id] = tensors_[root];
    }
  }
}

void Plan::run_node(const PlannedNode& node, const ops::Lane& lane) const noexcept {
  std::array<ops::Tensor, kMaxInputs> inputs;
  const auto own_copy = [&](std::uint32_t id) {
    ops::Tensor tensor = tensors_[id];
    tensor.data += tensor.copy_stride * lane.worker;
    return tensor;
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs[i] = own_copy(node.inputs[i]);
  ops::Io io;
  io.inputs = {inputs.data(), node.inputs.size()};
  io.output = own_copy(node.output);
  io.partition = node.partition;
  io.scratch = arena_ + scratch_offset_ + scratch_stride_ * lane.worker;
  node.op->run(io, lane);
}

std::string Plan::describe() const {
  static constexpr const char* kKinds[] = {"rows", "columns", "units", "replicated"};
  std::string text;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    text += "stage " + std::to_string(stage) + "\n";
    for (std::size_t i = stages_[stage].first; i < stages_[stage].last; ++i) {
      const PlannedNode& node = nodes_[i];
      text += "  " + std::string(node.op->name()) + " " +
              to_string(tensors_[node.output].type.shape) + " by " +
              kKinds[static_cast<int>(node.partition.kind)];
      const std::string detail = node.op->detail();
      text += detail.empty() ? "\n" : "  " + detail + "\n";
    }
  }
  return text;
}

}  // namespace lockstep
