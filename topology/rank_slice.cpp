// A slice never holds parts of two nodes: weights that are split over nodes want whole ones, and a
// rank with less than a node wants all of its memory nearby.
#include "topology/rank_slice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "topology/selection.h"

namespace lockstep::topology {
namespace {

// Part `index` of `parts` of a row of `count` things: the first parts take the remainder.
struct Part {
  std::size_t begin, end;
};
Part part_of(std::size_t count, std::size_t index, std::size_t parts) {
  const std::size_t base = count / parts;
  const std::size_t extra = count % parts;
  const std::size_t begin = index * base + std::min(index, extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

// Ranks for every group, at least one each; more to where most cores are left for each.
std::vector<std::size_t> ranks_of_groups(const std::vector<std::vector<unsigned>>& groups,
                                         std::size_t ranks) {
  std::vector<std::size_t> given(groups.size(), 1);
  for (std::size_t i = groups.size(); i < ranks; ++i) {
    std::size_t best = 0;
    for (std::size_t g = 1; g < groups.size(); ++g) {
      // cores / (ranks + 1) without fractions; the first of equals.
      if (groups[g].size() * (given[best] + 1) > groups[best].size() * (given[g] + 1)) best = g;
    }
    ++given[best];
  }
  return given;
}

// Indices of the cores of one rank.
std::vector<unsigned> cores_of_rank(const Machine& machine, std::size_t rank, std::size_t ranks) {
  const std::vector<std::vector<unsigned>> groups = groups_of(machine, Level::node);
  std::vector<unsigned> cores;
  if (ranks <= groups.size()) {
    const Part nodes = part_of(groups.size(), rank, ranks);
    for (std::size_t g = nodes.begin; g < nodes.end; ++g) {
      cores.insert(cores.end(), groups[g].begin(), groups[g].end());
    }
    return cores;
  }
  const std::vector<std::size_t> given = ranks_of_groups(groups, ranks);
  std::size_t group = 0;
  for (; rank >= given[group]; ++group) rank -= given[group];
  const Part part = part_of(groups[group].size(), rank, given[group]);
  const auto first = groups[group].begin();
  cores.assign(first + static_cast<std::ptrdiff_t>(part.begin),
               first + static_cast<std::ptrdiff_t>(part.end));
  return cores;
}

}  // namespace

std::vector<unsigned> rank_slice(const Machine& machine, unsigned rank, unsigned ranks) {
  std::vector<unsigned> processors;
  const std::size_t cores = machine.cores.size();
  if (ranks > cores) {
    rank = static_cast<unsigned>(std::uint64_t{rank} * cores / ranks);
    ranks = static_cast<unsigned>(cores);
  }
  for (const unsigned core : cores_of_rank(machine, rank, ranks)) {
    const std::vector<unsigned>& here = machine.cores[core].processors;
    processors.insert(processors.end(), here.begin(), here.end());
  }
  std::ranges::sort(processors);
  return processors;
}

std::string describe_processors(const Machine& machine, const std::vector<unsigned>& processors) {
  std::vector<unsigned> nodes;
  for (const Core& core : machine.cores) {
    const bool used = std::ranges::any_of(core.processors, [&](unsigned processor) {
      return std::ranges::find(processors, processor) != processors.end();
    });
    const unsigned node = machine.nodes[core.node].os_index;
    if (used && std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
  return (nodes.size() == 1 ? "node " : "nodes ") + format_index_list(nodes) +
         (processors.size() == 1 ? ", processor " : ", processors ") +
         format_index_list(processors);
}

}  // namespace lockstep::topology
