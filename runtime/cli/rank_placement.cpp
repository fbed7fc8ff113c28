// See rank_placement.h. Ranks that can talk compare their masks and so know exactly who shares
// processors with whom: two ranks that were bound to each of two nodes are two pairs. Others take a
// mask that leaves out a part of the machine as the launcher's binding.
#include "runtime/cli/rank_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "lockstep/error.h"
#include "runtime/executor.h"
#include "topology/binding.h"
#include "topology/budget.h"
#include "topology/launcher.h"
#include "topology/placement.h"
#include "topology/rank_slice.h"
#include "topology/selection.h"

namespace lockstep::cli {
namespace {

topology::Machine detect_machine() {
  Executor::release_this_thread();
  try {
    return topology::Machine::detect();
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::no_resource,
                fmt::format("cannot read the machine's topology: {}", error.what()));
  }
}

void apply_quota(EngineOptions& options, const topology::Machine& machine, unsigned ranks) {
  if (options.threads != 0) return;
  try {
    options.threads = threads_of_quota(topology::select(machine, {.nodes = options.nodes,
                                                                  .processors = options.processors,
                                                                  .smt = options.smt}),
                                       topology::cgroup_cpu_limit(), ranks);
  } catch (const std::invalid_argument&) {
    // Processors that are not there: making the engine tells of them.
  }
}

}  // namespace

std::string processors_of_this_rank() {
  // Two machines never have the same; two containers of one machine do.
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot + " " + topology::format_index_list(topology::affinity_mask());
}

Sharers find_sharers(const std::vector<std::string>& told, unsigned rank) {
  const auto here = [&](auto begin, auto end) {
    return static_cast<unsigned>(std::count(begin, end, told[rank]));
  };
  return {here(told.begin(), told.begin() + rank), here(told.begin(), told.end())};
}

std::string single_core_warning(const topology::Machine& machine, const topology::Rank& local) {
  const bool most_is_idle = machine.allowed_processors / machine.mask_processors >= 2 * local.ranks;
  if (local.launcher != topology::Launcher::mpi || local.ranks < 2 || !machine.is_bound() ||
      machine.cores.size() != 1 || !most_is_idle) {
    return "";
  }
  return fmt::format(
      "mpirun bound this rank to 1 core of {}, and {} ranks run on this machine; --map-by numa "
      "gives each a node, --bind-to none lets them divide the machine",
      machine.total_cores, local.ranks);
}

unsigned threads_of_quota(const topology::Machine& machine, std::optional<double> quota,
                          unsigned ranks) {
  if (!quota) return 0;
  const topology::ThreadBudget budget = topology::thread_budget(machine, *quota / ranks);
  return budget.threads < machine.cores.size() ? budget.threads : 0;
}

RankPlacement place_rank(EngineOptions& options, const std::optional<Sharers>& sharers) {
  const std::optional<topology::Rank> local = topology::rank_on_machine(topology::process_variable);
  const unsigned ranks = std::max(local ? local->ranks : 1, sharers ? sharers->ranks : 1);
  if (ranks < 2 || !topology::user_openmp_binding().empty()) return {};
  const topology::Machine machine = detect_machine();
  RankPlacement placement;
  if (options.nodes.empty() && options.processors.empty()) {
    Sharers who = sharers.value_or(Sharers{});
    if (!sharers && local && !machine.is_bound()) who = {local->rank, local->ranks};
    if (who.ranks > 1) options.processors = topology::rank_slice(machine, who.rank, who.ranks);
    if (!options.processors.empty()) {
      placement.note = fmt::format("local rank {} of {}: {}", who.rank, who.ranks,
                                   topology::describe_processors(machine, options.processors));
    } else if (local) {
      placement.warning = single_core_warning(machine, *local);
    }
  }
  apply_quota(options, machine, ranks);
  return placement;
}

}  // namespace lockstep::cli
