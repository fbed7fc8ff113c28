// Which worker runs on which core: contiguous worker ids per NUMA node, one physical core each.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.h"

namespace lockstep::topology {

struct Worker {
  unsigned core = 0;       // index into Machine::cores
  unsigned processor = 0;  // OS index it is pinned to
  unsigned node = 0;       // 0-based over the nodes that have workers, ascending
};

struct Placement {
  std::vector<Worker> workers;
  unsigned nodes = 1;           // nodes that have workers
  bool oversubscribed = false;  // more workers than physical cores in the mask: nobody is pinned
  bool pinned = true;  // false: oversubscribed, switched off, or the user bound OpenMP himself
  std::string note;    // why not pinned; empty otherwise

  // `threads` >= 1 workers spread over the nodes in proportion to their cores (remainder evenly),
  // each on the first allowed processor of its own core. More threads than cores gives an
  // oversubscribed, unpinned placement. `user_binding` names an OpenMP binding variable that is set
  // (see user_openmp_binding), or is empty: theirs wins, nobody is pinned.
  static Placement make(const Machine& machine, unsigned threads, const std::string& user_binding);
};

// "OMP_PROC_BIND=close" if the user bound OpenMP threads by one of OMP_PROC_BIND (other than
// false), OMP_PLACES, GOMP_CPU_AFFINITY, KMP_AFFINITY; else empty.
std::string user_openmp_binding();

}  // namespace lockstep::topology
