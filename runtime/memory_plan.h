// How a session is fitted into the memory that there is, before anything is loaded: a job that
// would be killed in its third hour is refused in its first second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lockstep/lockstep.h"
#include "topology/memory_budget.h"

namespace lockstep {

// What is asked for.
struct MemoryWish {
  SessionOptions session;                    // context: the one wanted; cache_positions is left out
  bool context_fixed = false;                // else the context may be made smaller to fit
  std::optional<std::uint64_t> cache_bytes;  // for keys and values; else as much as can be of use
};

struct MemoryPlan {
  std::size_t context = 0;
  std::size_t cache_positions = 0;
  std::uint64_t weights = 0, cache = 0, activations = 0;  // bytes
  topology::MemoryBudget budget;
  bool context_cut = false;  // smaller than wanted
  bool cache_cut = false;    // less than all slots can need

  std::uint64_t total() const noexcept { return weights + cache + activations; }
};

// What weights and activations of a model take; it need not have been loaded yet (see
// ModelOptions::before_load), and a session of one short slot is made to find out.
struct MemoryDemand {
  std::uint64_t weights = 0;
  std::uint64_t activations = 0;  // of a step with max_batch tokens
  std::uint64_t cache_block = 0;  // bytes
};
MemoryDemand measure_demand(const Model& model, const SessionOptions& session);

// Throws Error(no_resource) with all figures and what to do, if a single sequence of the wanted
// context (of kLeastContext, where it is not fixed) does not fit; Error(usage) if cache_bytes are
// less than it needs.
inline constexpr std::size_t kLeastContext = 256;
MemoryPlan plan_memory(const MemoryDemand& demand, const MemoryWish& wish,
                       const topology::MemoryBudget& budget);

// The budget of the process that this engine computes in.
topology::MemoryBudget memory_budget_of(const Engine& engine);

}  // namespace lockstep
