// Planning: stages first, then lifetimes in stages, then addresses.
#include "runtime/plan.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "runtime/fusions.h"
#include "runtime/schedule.h"
#include "runtime/stages.h"

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

}  // namespace

Plan Plan::make(const ops::Graph& graph, const PlanOptions& options) {
  Plan plan;
  plan.options_ = options;
  plan.options_.workers = std::max(1u, options.workers);
  plan.sections_ = graph.sections();
  for (const ops::ValueInfo& value : graph.values()) plan.names_.push_back(value.name);
  for (const std::string& name : options.unfused) check_fusion_name(name);
  plan.roots_ = find_roots(graph);
  for (const ops::Node& node : graph.nodes()) {
    if (node.inputs.size() > kMaxInputs) throw std::logic_error("an op has too many inputs");
    plan.weight_bytes_ += node.op->weight_bytes();
  }
  StagedNodes staged = build_stages(graph, plan.options_, plan.roots_);
  plan.nodes_ = std::move(staged.nodes);
  plan.stages_ = std::move(staged.stages);
  for (Stage& stage : plan.stages_) divide(stage, plan.nodes_, graph, plan.options_);
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
        placed_[node.output].bytes *= workers();
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
          std::max(scratch, node.op->scratch_bytes(types, values[node.output].type, workers()));
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
  arena_bytes_ += scratch_stride_ * workers();
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

void Plan::run_stage(const Stage& stage, const ops::Lane& lane, std::span<ChunkCounter> taken,
                     double* node_seconds) const noexcept {
  for (const std::uint32_t node : stage.replicated) {
    run_node(node, lane, {0, nodes_[node].partition.extent}, node_seconds);
  }
  if (lane.workers != workers()) {  // OpenMP granted another team than was planned for
    for (const Chain& chain : stage.chains) {
      run_part(chain, lane, chain.partition.slice(lane), node_seconds);
    }
    return;
  }
  for (const Chain& chain : stage.chains) {
    run_part(chain, lane, chain.own[lane.worker], node_seconds);
  }
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    // Their own first, then those of the others from the next one on.
    const std::size_t owner = (lane.worker + i) % stage.chunks.size();
    const std::vector<Chunk>& chunks = stage.chunks[owner];
    while (taken[owner].taken.load(std::memory_order_relaxed) < chunks.size()) {
      const std::size_t next = taken[owner].taken.fetch_add(1, std::memory_order_relaxed);
      if (next >= chunks.size()) break;
      run_part(stage.chains[chunks[next].chain], lane, chunks[next].part, node_seconds);
    }
  }
}

void Plan::run_part(const Chain& chain, const ops::Lane& lane, ops::Slice part,
                    double* node_seconds) const noexcept {
  if (part.empty()) return;
  for (const std::uint32_t node : chain.nodes) run_node(node, lane, part, node_seconds);
}

void Plan::run_node(std::uint32_t index, const ops::Lane& lane, ops::Slice part,
                    double* node_seconds) const noexcept {
  const PlannedNode& node = nodes_[index];
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
  io.part = part;
  io.scratch = arena_ + scratch_offset_ + scratch_stride_ * lane.worker;
  io.node = lane.node;
  if (node_seconds == nullptr) return node.op->run(io);
  const double begin = omp_get_wtime();
  node.op->run(io);
  node_seconds[index] += omp_get_wtime() - begin;
}

std::vector<Plan::Buffer> Plan::buffers() const {
  std::vector<Buffer> all;
  for (std::uint32_t id = 0; id < placed_.size(); ++id) {
    const Placed& placed = placed_[id];
    if (!placed.in_arena) continue;
    all.push_back({id, names_[id], placed.offset, placed.bytes, placed.first_stage,
                   std::min(placed.last_stage, stages_.size() - 1)});
  }
  return all;
}

}  // namespace lockstep
