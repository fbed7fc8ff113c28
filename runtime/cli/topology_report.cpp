// The tree is drawn from topology::Machine, whose cores are the usable ones.
#include "runtime/cli/topology_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ops/split.h"
#include "runtime/cli/placement_options.h"
#include "runtime/cli/units.h"
#include "topology/budget.h"
#include "topology/machine.h"
#include "topology/memory_policy.h"
#include "topology/placement.h"
#include "topology/selection.h"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

ops::Slice rows_of(const topology::Placement& placement, unsigned worker,
                   const ExampleMatrix& matrix) {
  const auto workers = static_cast<unsigned>(placement.workers.size());
  return ops::split(matrix.rows, matrix.align, {worker, workers, 0, 1});
}

// Workers by core; several where there are more of them than cores.
std::map<unsigned, std::vector<unsigned>> workers_by_core(const topology::Placement& placement) {
  std::map<unsigned, std::vector<unsigned>> by_core;
  for (unsigned i = 0; i < placement.workers.size(); ++i) {
    by_core[placement.workers[i].core].push_back(i);
  }
  return by_core;
}

std::string counted(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// One sentence for every limit on the number of workers, whether it decided or not.
std::vector<std::string> limits(const Engine& engine) {
  const topology::Machine& machine = engine.machine();
  const topology::ThreadBudget& budget = engine.budget();
  std::vector<std::string> lines;
  lines.push_back(fmt::format("affinity mask: {} of {}", machine.mask_processors,
                              counted(machine.total_processors, "processor")));
  lines.push_back(fmt::format("cores: {} usable of {}{}", machine.cores.size(), machine.total_cores,
                              machine.smt        ? ", every hardware thread counted as one (--smt)"
                              : machine.selected ? ", after --nodes, --cores or --numa one-node"
                                                 : ""));
  if (machine.slow_cores != 0) {
    lines.push_back(fmt::format("slower cores: {} left out, as a team waits for its slowest worker",
                                machine.slow_cores));
  }
  lines.push_back(budget.quota ? fmt::format("cgroup CPU quota: {:g} processors", *budget.quota)
                               : std::string("cgroup CPU quota: none"));
  lines.push_back("budget: " + budget.reason);
  if (engine.requested_threads() != budget.threads || engine.threads() != budget.threads) {
    lines.push_back(fmt::format("team: {} asked for, {} granted by OpenMP",
                                engine.requested_threads(), engine.threads()));
  }
  return lines;
}

std::string core_line(const topology::Machine& machine, const topology::Placement& placement,
                      unsigned core, const std::vector<unsigned>& workers,
                      const ExampleMatrix& matrix) {
  const topology::Core& of = machine.cores[core];
  std::string line =
      fmt::format("core {:<4} cpu {:<8}", of.os_index, topology::format_index_list(of.processors));
  if (workers.empty()) return line + "  idle";
  for (const unsigned worker : workers) {
    const ops::Slice rows = rows_of(placement, worker, matrix);
    line +=
        fmt::format("  worker {:<4} {}", worker,
                    rows.empty() ? "no rows" : fmt::format("rows {}-{}", rows.begin, rows.end - 1));
  }
  return line;
}

}  // namespace

ordered_json topology_json(const Engine& engine, const ExampleMatrix& matrix) {
  const topology::Machine& machine = engine.machine();
  const topology::Placement& placement = engine.placement();
  ordered_json workers = ordered_json::array();
  for (unsigned i = 0; i < placement.workers.size(); ++i) {
    const topology::Worker& worker = placement.workers[i];
    const topology::Core& core = machine.cores.at(worker.core);
    const ops::Slice rows = rows_of(placement, i, matrix);
    workers.push_back({{"worker", i},
                       {"package", core.package},
                       {"node", worker.os_node},
                       {"cache", core.cache},
                       {"core", core.os_index},
                       {"processor", worker.processor},
                       {"rows", {rows.begin, rows.end}}});
  }
  ordered_json nodes = ordered_json::array();
  for (const topology::MemoryNode& node : machine.nodes) {
    nodes.push_back({{"node", node.os_index},
                     {"memory_bytes", node.memory_bytes},
                     {"cores", node.cores.size()}});
  }
  const std::string& refusal = topology::memory_policy_refusal();
  return {{"cpu", machine.cpu_model},
          {"this_system", machine.is_this_system},
          {"packages", machine.packages},
          {"nodes", nodes},
          {"limits", limits(engine)},
          {"threads", engine.threads()},
          {"pinned", placement.pinned},
          {"note", placement.note},
          {"policy", name_of(engine.numa())},
          {"memory_binding", refusal.empty() ? "permitted" : refusal},
          {"matrix", {{"name", matrix.name}, {"rows", matrix.rows}}},
          {"workers", workers}};
}

std::string topology_text(const Engine& engine, const ExampleMatrix& matrix) {
  const topology::Machine& machine = engine.machine();
  const topology::Placement& placement = engine.placement();
  std::string text = fmt::format(
      "{}: {}, {}, {}{}\n", machine.cpu_model.empty() ? "unknown processor" : machine.cpu_model,
      counted(machine.packages, "package"), counted(machine.nodes.size(), "NUMA node"),
      counted(machine.total_cores, "core"),
      machine.is_this_system ? "" : " (described, not this system)");
  for (const std::string& line : limits(engine)) text += "  " + line + "\n";
  const std::string& refusal = topology::memory_policy_refusal();
  text += fmt::format("  policy: {}; memory binding {}\n", name_of(engine.numa()),
                      refusal.empty() ? "permitted" : refusal);
  if (!placement.note.empty()) text += "  " + placement.note + "\n";
  text += fmt::format("rows are those of {}, {} of them\n", matrix.name, matrix.rows);

  const auto workers = workers_by_core(placement);
  std::map<unsigned, std::vector<unsigned>> packages;  // nodes that have cores there
  for (unsigned n = 0; n < machine.nodes.size(); ++n) {
    for (const unsigned core : machine.nodes[n].cores) {
      std::vector<unsigned>& nodes = packages[machine.cores[core].package];
      if (std::ranges::find(nodes, n) == nodes.end()) nodes.push_back(n);
    }
  }
  for (const auto& [package, nodes] : packages) {
    text += fmt::format("package {}\n", package);
    for (const unsigned n : nodes) {
      const topology::MemoryNode& node = machine.nodes[n];
      text += fmt::format("  node {}  {}\n", node.os_index,
                          node.memory_bytes == 0 ? "no memory" : humane_bytes(node.memory_bytes));
      unsigned cache = UINT32_MAX;
      for (const unsigned core : node.cores) {
        const topology::Core& of = machine.cores[core];
        if (of.package != package) continue;
        if (of.cache != cache) text += fmt::format("    cache {}\n", cache = of.cache);
        const auto here = workers.find(core);
        text += "      " +
                core_line(machine, placement, core,
                          here == workers.end() ? std::vector<unsigned>{} : here->second, matrix) +
                "\n";
      }
    }
  }
  for (const topology::MemoryNode& node : machine.nodes) {
    if (!node.cores.empty()) continue;
    text += fmt::format("node {}  {}, no usable core\n", node.os_index,
                        node.memory_bytes == 0 ? "no memory" : humane_bytes(node.memory_bytes));
  }
  return text;
}

}  // namespace lockstep::cli
