// Everything that can be decided before a graph runs, decided once: which nodes share a stage, how
// each node is divided among the workers, and where every value lies in the arena.
//
// A stage is a run of nodes that need no barrier between them; the executor puts one barrier after
// each (stages.h proves which). In a stage, nodes that hand values on part by part form a chain:
// any part of a chain can be computed by any worker, node after node, without the rest of it. So a
// part is what the schedule (schedule.h) gives to workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "ops/graph.h"

namespace lockstep {

struct PlanOptions {
  unsigned workers = 1;
  unsigned numa_nodes = 1;  // that the workers are on
  Schedule schedule = Schedule::automatic;
  std::vector<std::string> unfused = {};  // names of fusions (fusions.h) that are switched off
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
  std::uint32_t section = 0;  // see Plan::section()
  ops::Partition partition;
};

// Nodes of one stage with one partition, to be run in this order over any part of it.
struct Chain {
  std::vector<std::uint32_t> nodes;  // of Plan::nodes()
  ops::Partition partition;
  std::vector<ops::Slice> own;  // by worker
};

// A part of a chain that another worker may take over.
struct Chunk {
  std::uint32_t chain = 0;
  ops::Slice part;
};

struct alignas(128) ChunkCounter {  // two cache lines, as they are fetched
  std::atomic<std::size_t> taken{0};
};

struct Stage {
  std::size_t first = 0;  // nodes [first, last) of Plan::nodes()
  std::size_t last = 0;
  std::vector<std::uint32_t> replicated;  // computed first, by every worker for itself
  std::vector<Chain> chains;
  // By worker, who takes them in this order unless others are done earlier. Empty: there are none.
  std::vector<std::vector<Chunk>> chunks;
};

class Plan {
 public:
  // The graph must outlive the plan. Ops need at most kMaxInputs inputs.
  static constexpr std::size_t kMaxInputs = 8;
  static Plan make(const ops::Graph& graph, const PlanOptions& options);

  const std::vector<PlannedNode>& nodes() const noexcept { return nodes_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }
  unsigned workers() const noexcept { return options_.workers; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  std::size_t scratch_bytes_per_worker() const noexcept { return scratch_stride_; }
  // Weight bytes that one run reads.
  std::uint64_t weight_bytes() const noexcept { return weight_bytes_; }
  const PlanOptions& options() const noexcept { return options_; }
  // The part of the model a node belongs to, as the graph has it.
  const std::string& section(const PlannedNode& node) const { return sections_.at(node.section); }

  // A value's memory in the arena, from the beginning of its first stage to the end of its last.
  struct Buffer {
    std::uint32_t value = 0;
    std::string name;  // of the op that makes it, or of the input
    std::size_t offset = 0;
    std::size_t bytes = 0;  // all copies
    std::size_t first_stage = 0;
    std::size_t last_stage = 0;
  };
  // Those of all values with memory of their own, by value.
  std::vector<Buffer> buffers() const;

  // Gives every value its address inside `arena` (64-byte aligned, arena_bytes() long).
  void bind(std::byte* arena) noexcept;
  const std::byte* bound_arena() const noexcept { return arena_; }
  const ops::TensorType& type(std::uint32_t value) const { return tensors_.at(value).type; }
  // The memory of a value after bind().
  const ops::Tensor& tensor(ops::Value value) const { return tensors_.at(value.id); }

  // What one worker has to do in a stage. `taken`: by worker, how many of their chunks were taken;
  // shared by the team, 0 when the stage begins. `node_seconds`: by node, where to add the time it
  // took, or null. Allocation-free.
  void run_stage(const Stage& stage, const ops::Lane& lane, std::span<ChunkCounter> taken,
                 double* node_seconds = nullptr) const noexcept;

 private:
  struct Placed {  // a value's place in the arena
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t first_stage = 0;
    std::size_t last_stage = 0;
    bool in_arena = false;
  };

  void run_node(std::uint32_t node, const ops::Lane& lane, ops::Slice part,
                double* node_seconds) const noexcept;
  void run_part(const Chain& chain, const ops::Lane& lane, ops::Slice part,
                double* node_seconds) const noexcept;
  void place_values(const ops::Graph& graph, const std::vector<std::uint32_t>& roots);
  void pack_arena(std::vector<std::uint32_t> order);

  PlanOptions options_;
  std::vector<std::string> sections_;
  std::vector<std::string> names_;  // by value id
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
