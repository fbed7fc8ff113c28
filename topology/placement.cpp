// Placement is arithmetic on a Machine and calls nothing: any machine that hwloc can describe can
// be placed on any other.
#include "topology/placement.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>

namespace lockstep::topology {
namespace {

// ceil(a * b / c) without overflow for any counts of threads and cores.
unsigned share(unsigned a, std::size_t b, std::size_t c) {
  return static_cast<unsigned>((std::uint64_t{a} * b + c - 1) / c);
}

// Numbers the nodes that have workers, in their order.
void number_nodes(Placement& placement, const Machine& machine) {
  std::set<unsigned> used;
  for (const Worker& worker : placement.workers) used.insert(machine.cores[worker.core].node);
  for (Worker& worker : placement.workers) {
    const unsigned node = machine.cores[worker.core].node;
    worker.node = static_cast<unsigned>(std::distance(used.begin(), used.find(node)));
    worker.os_node = machine.nodes[node].os_index;
  }
  placement.nodes = std::max(static_cast<unsigned>(used.size()), 1u);
}

// "" if the variable is not set.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isspace(c) != 0; });
}

// Why nobody is pinned, or "".
std::string reason_not_to_pin(const Machine& machine, unsigned threads,
                              const std::string& user_binding) {
  const std::size_t cores = machine.cores.size();
  if (threads > cores) {
    std::string text = std::to_string(threads) + " workers on " + std::to_string(cores) +
                       (machine.smt ? " hardware thread" : " physical core") +
                       (cores == 1 ? "" : "s") + ": nobody is pinned";
    if (machine.slow_cores != 0) {
      text += " (" + std::to_string(machine.slow_cores) + " slower cores not counted)";
    }
    return text;
  }
  if (!user_binding.empty()) return user_binding + " is set: OpenMP's binding is kept";
  if (!machine.is_this_system) return "a described machine, not this one: nobody is pinned";
  return {};
}

}  // namespace

Placement Placement::make(const Machine& machine, unsigned threads, const std::string& user_binding,
                          Level level) {
  Placement placement;
  placement.note = reason_not_to_pin(machine, threads, user_binding);
  placement.pinned = placement.note.empty();
  placement.oversubscribed = threads > machine.cores.size();
  placement.workers.reserve(threads);

  // Group after group, the workers so far are the cores so far times threads / cores, rounded up:
  // shares in proportion, the remainder spread over the groups, and never more than a group has
  // cores.
  const std::size_t total = machine.cores.size();
  std::size_t cores_before = 0;
  for (const std::vector<unsigned>& cores : groups_of(machine, level)) {
    const auto begin = static_cast<unsigned>(placement.workers.size());
    cores_before += cores.size();
    const unsigned here = share(threads, cores_before, total) - begin;
    for (unsigned i = 0; i < here; ++i) {
      // Also spread within the group, so that a part of it uses all of its caches.
      const unsigned core = cores[std::size_t{i} * cores.size() / here];
      placement.workers.push_back({core, machine.cores[core].processors.front(), 0, 0});
    }
  }
  number_nodes(placement, machine);
  return placement;
}

Placement Placement::observed(const Machine& machine, const std::vector<int>& processors) const {
  Placement seen = *this;
  for (std::size_t i = 0; i < seen.workers.size() && i < processors.size(); ++i) {
    for (unsigned core = 0; core < machine.cores.size(); ++core) {
      const std::vector<unsigned>& here = machine.cores[core].processors;
      const auto found = std::ranges::find(here, static_cast<unsigned>(processors[i]));
      if (processors[i] >= 0 && found != here.end()) {
        seen.workers[i] = {core, *found, 0, 0};
      }
    }
  }
  number_nodes(seen, machine);
  return seen;
}

std::string user_openmp_binding() {
  const std::string proc_bind = environment("OMP_PROC_BIND");
  std::string first_word = lower_case(proc_bind);
  std::erase_if(first_word, [](unsigned char c) { return std::isspace(c) != 0; });
  // "false" switches the runtime's binding off, whatever the other variables say.
  if (first_word == "false") return {};
  for (const char* const name :
       {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    const std::string value = environment(name);
    if (!is_blank(value)) return std::string(name) + "=" + value;
  }
  return {};
}

}  // namespace lockstep::topology
