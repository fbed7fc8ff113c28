// Where the workers of a rank go when several ranks share a machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "topology/launcher.h"
#include "topology/machine.h"

namespace lockstep::cli {

// The ranks of this machine that may use exactly the same processors, and the place among them.
struct Sharers {
  unsigned rank = 0, ranks = 1;

  bool operator==(const Sharers&) const = default;
};

// What a rank tells the others for find_sharers(): the machine that it runs on and its affinity
// mask.
std::string processors_of_this_rank();
// The sharers of rank `rank`, from what all ranks told.
Sharers find_sharers(const std::vector<std::string>& told, unsigned rank);

// What was done, as one line each, or "".
struct RankPlacement {
  std::string note;     // "local rank 1 of 2: node 1, processors 48-95"
  std::string warning;  // the launcher bound the rank to less than it meant to
};

// The warning that a launcher bound each of several ranks to one core and left most of the machine
// idle, or "". Open MPI does so without being asked where there are two.
std::string single_core_warning(const topology::Machine& machine, const topology::Rank& local);

// The threads that a rank's part of a cgroup's CPU quota allows, where that is fewer than `machine`
// has cores; else 0.
unsigned threads_of_quota(const topology::Machine& machine, std::optional<double> quota,
                          unsigned ranks);

// Gives this rank a slice of the processors that it shares with others, unless the options name
// processors or nodes, the user bound OpenMP, or the launcher bound the ranks. `sharers`: as the
// ranks told each other; if they did not, the launcher's variables and the affinity mask have to
// do. The part of a cgroup's CPU quota that is this rank's decides the threads if it is less.
RankPlacement place_rank(EngineOptions& options, const std::optional<Sharers>& sharers);

}  // namespace lockstep::cli
