// How many worker threads the process may sensibly use, and which limit decided it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace lockstep::topology {

// CPU bandwidth limit of the cgroup (v2 cpu.max, v1 cpu.cfs_quota_us / cpu.cfs_period_us): the
// smallest ratio quota/period on the path from the process's group to the root, or nothing if
// unlimited. `proc_self_cgroup` is the file that names the group (/proc/self/cgroup), `root` the
// mount point
// (/sys/fs/cgroup); both are parameters so that a fake tree can be tested. Unreadable files count
// as unlimited.
std::optional<double> cgroup_cpu_limit(const std::filesystem::path& proc_self_cgroup,
                                       const std::filesystem::path& root);
std::optional<double> cgroup_cpu_limit();

struct ThreadBudget {
  unsigned threads = 1;  // the default number of workers: min of the limits, at least 1
  unsigned cores = 1;    // physical cores inside the affinity mask
  std::optional<double> quota;
  // One sentence: "2 threads: 2 physical cores in the affinity mask" or "1 thread: cgroup CPU quota
  // of 1.5 rounded down (2 physical cores in the mask)".
  std::string reason;
};

// min(physical cores in the mask, cgroup quota rounded down), at least 1.
ThreadBudget thread_budget(const Machine& machine, std::optional<double> quota);

}  // namespace lockstep::topology
