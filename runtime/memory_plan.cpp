// See memory_plan.h.
#include "runtime/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine.h"
#include "runtime/kv_cache.h"
#include "runtime/model.h"
#include "runtime/plan.h"

namespace lockstep {
namespace {

// For what nobody counts: stacks, code, buffers of the OpenMP runtime and of the files.
constexpr std::uint64_t kMargin = std::uint64_t{64} << 20;

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

[[noreturn]] void refuse(const MemoryDemand& demand, std::size_t context, std::uint64_t least,
                         const topology::MemoryBudget& budget) {
  throw Error(
      ErrorCode::no_resource,
      fmt::format("not enough memory: weights {}, activations {}, a cache for one sequence of {} "
                  "positions {}, and {} for stacks and buffers come to {}, but {} leaves {}; use a "
                  "smaller --ctx, --kv-type q8_0, fewer --batch-tokens or a smaller model",
                  mebibytes(demand.weights), mebibytes(demand.activations), context,
                  mebibytes(least), mebibytes(kMargin),
                  mebibytes(demand.weights + demand.activations + least + kMargin), budget.reason,
                  mebibytes(budget.bytes)));
}

}  // namespace

MemoryDemand measure_demand(const Model& model, const SessionOptions& session) {
  SessionOptions small = session;
  small.cache_positions = 0;
  small.slots = 1;
  small.context = std::min<std::size_t>(session.context, kKvBlock);
  MemoryDemand demand;
  demand.weights = model.info().weight_bytes;
  demand.cache_block = kv_block_bytes(model.impl().config, session.kv_type);
  Session probe(model, small);
  demand.activations =
      probe.plan(session.max_batch, std::min(session.slots, session.max_batch)).arena_bytes();
  return demand;
}

MemoryPlan plan_memory(const MemoryDemand& demand, const MemoryWish& wish,
                       const topology::MemoryBudget& budget) {
  const SessionOptions& session = wish.session;
  const bool share = session.share_prefixes;
  const auto cache_for = [&](std::size_t slots, std::size_t context) {
    return kv_blocks_for(slots, context, share) * demand.cache_block;
  };
  MemoryPlan plan;
  plan.context = session.context;
  plan.weights = demand.weights;
  plan.activations = demand.activations;
  plan.budget = budget;
  const std::uint64_t fixed = demand.weights + demand.activations + kMargin;
  std::uint64_t room = budget.bytes > fixed ? budget.bytes - fixed : 0;
  if (wish.cache_bytes) room = std::min(room, *wish.cache_bytes);
  if (const std::uint64_t least = cache_for(1, plan.context); least > room) {
    if (wish.cache_bytes && *wish.cache_bytes < least && wish.context_fixed) {
      throw Error(ErrorCode::usage,
                  fmt::format("a key/value cache of {} is too small: one sequence of {} positions "
                              "takes {}",
                              mebibytes(*wish.cache_bytes), plan.context, mebibytes(least)));
    }
    const std::uint64_t blocks = room / demand.cache_block;
    const std::size_t fits = blocks > 1 ? (blocks - (share ? 1 : 0)) * kKvBlock : 0;
    const std::size_t needed = std::min(plan.context, kLeastContext);
    if (wish.context_fixed || fits < needed) {
      const std::size_t context = wish.context_fixed ? plan.context : needed;
      refuse(demand, context, cache_for(1, context), budget);
    }
    plan.context = std::min(plan.context, fits);
    plan.context_cut = plan.context < session.context;
  }
  const std::uint64_t most = cache_for(session.slots, plan.context);
  plan.cache_cut = most > room;
  plan.cache = std::min(most, room) / demand.cache_block * demand.cache_block;
  plan.cache_positions = plan.cache / demand.cache_block * kKvBlock;
  return plan;
}

topology::MemoryBudget memory_budget_of(const Engine& engine) {
  std::vector<unsigned> nodes;
  const topology::Machine& machine = engine.machine();
  if (!machine.is_this_system) return topology::memory_budget(nodes);
  // Nodes that a cpuset forbids are listed without memory.
  const bool forbidden = std::any_of(machine.nodes.begin(), machine.nodes.end(),
                                     [](const auto& node) { return node.memory_bytes == 0; });
  if (engine.numa() == NumaPolicy::one_node) {
    nodes = engine.impl().page_policy().nodes();
  } else if (forbidden) {
    for (const topology::MemoryNode& node : machine.nodes) {
      if (node.memory_bytes != 0) nodes.push_back(node.os_index);
    }
  }
  return topology::memory_budget(nodes);
}

}  // namespace lockstep
