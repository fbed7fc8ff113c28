// Using a part of the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.h"

namespace lockstep::topology {

// What belongs together when workers are spread, and what "one node" is: with sub-NUMA clusters a
// socket has several nodes, and a node may have several last-level caches.
enum class Level : unsigned char { socket, node, cache };

struct Selection {
  std::vector<unsigned> nodes = {};       // OS indices; empty: all
  std::vector<unsigned> processors = {};  // OS indices; empty: all
  bool smt = false;                       // a worker on every hardware thread, not on every core
};

// The machine with those cores alone. Throws std::invalid_argument with what there is if a node or
// processor is not usable, or nothing is left.
Machine select(const Machine& machine, const Selection& selection);

// The machine with the cores of its largest group at this level (the first of equals) alone.
Machine largest_group(const Machine& machine, Level level);

// Indices of the machine's cores, group by group; within a group by node, then in their order.
std::vector<std::vector<unsigned>> groups_of(const Machine& machine, Level level);

// Numbers and ranges with commas, as "0-3,8", the way Linux and hwloc write sets. Throws
// std::invalid_argument.
std::vector<unsigned> parse_index_list(std::string_view text);
std::string format_index_list(std::vector<unsigned> indices);

}  // namespace lockstep::topology
