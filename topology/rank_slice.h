// Dividing a machine among ranks that were all given the whole of it.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.h"

namespace lockstep::topology {

// OS indices of the processors for local rank `rank` (0-based, less than `ranks`). Slices are
// disjoint, cover all cores, and are contiguous in the machine's order: whole NUMA nodes where
// there are enough of them (some for the first ranks more than for the last), else equal numbers of
// cores of one node. More ranks than cores: a core for several ranks.
std::vector<unsigned> rank_slice(const Machine& machine, unsigned rank, unsigned ranks);

// "node 1, processors 48-95": where processors of this machine are.
std::string describe_processors(const Machine& machine, const std::vector<unsigned>& processors);

}  // namespace lockstep::topology
