// Everything that can be decided before a graph runs, decided once: which nodes share a stage, how
// each node is divided among the workers, and where every value lies in the arena.
//
// A stage is a run of nodes that need no barrier between them; the executor puts one barrier after
// each. The planner proves that from what the ops declare (ops/op.h) and knows no patterns: a node
// may join the current stage when everything it reads that was written in this stage was written by
// the same worker. That holds for a value divided the same way and read only in its own part, and
// for a replicated value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/graph.h"

namespace lockstep {

struct PlanOptions {
  unsigned workers = 1;
  // Every node in a stage of its own, nothing replicated.
  bool reference = false;
  // Per-token work on at most this many values is repeated by every worker when the op allows it:
  // cheaper than a barrier.
  std::size_t replicate_limit = 16384;
};

struct PlannedNode {
  const ops::Op* op = nullptr;
  std::vector<std::uint32_t> inputs;  // value ids
  std::uint32_t output = 0;
  ops::Partition partition;
};

// Nodes [first, last) of Plan::nodes().
struct Stage {
  std::size_t first = 0;
  std::size_t last = 0;
};

class Plan {
 public:
  // The graph must outlive the plan. Ops need at most kMaxInputs inputs.
  static constexpr std::size_t kMaxInputs = 8;
  static Plan make(const ops::Graph& graph, const PlanOptions& options);

  const std::vector<PlannedNode>& nodes() const noexcept { return nodes_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }
  unsigned workers() const noexcept { return workers_; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  // Weight bytes that one run reads.
  std::uint64_t weight_bytes() const noexcept { return weight_bytes_; }

  // Gives every value its address inside `arena` (64-byte aligned, arena_bytes() long).
  void bind(std::byte* arena) noexcept;
  const std::byte* bound_arena() const noexcept { return arena_; }
  // The memory of a value after bind().
  const ops::Tensor& tensor(ops::Value value) const { return tensors_.at(value.id); }

  // One worker's part of one node. Allocation-free.
  void run_node(const PlannedNode& node, const ops::Lane& lane) const noexcept;

  // The plan in words, one line per stage and node.
  std::string describe() const;

 private:
  struct Placed {  // a value's place in the arena
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t first_stage = 0;
    std::size_t last_stage = 0;
    bool in_arena = false;
  };

  void place_values(const ops::Graph& graph, const std::vector<std::uint32_t>& roots);
  void pack_arena(std::vector<std::uint32_t> order);

  unsigned workers_ = 1;
  std::vector<PlannedNode> nodes_;
  std::vector<Stage> stages_;
  std::vector<ops::Tensor> tensors_;  // by value id
  std::vector<std::uint32_t> roots_;  // by value id: the value whose memory it uses
  std::vector<Placed> placed_;        // by value id, meaningful for roots
  std::size_t scratch_offset_ = 0;
  std::size_t scratch_stride_ = 0;  // bytes per worker
  std::size_t arena_bytes_ = 0;
  std::uint64_t weight_bytes_ = 0;
  std::byte* arena_ = nullptr;
};

}  // namespace lockstep
