// Which worker runs on which core: contiguous worker ids per NUMA node, one physical core each.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.h"
#include "topology/selection.h"

namespace lockstep::topology {

struct Worker {
  unsigned core = 0;       // index into Machine::cores
  unsigned processor = 0;  // OS index it is pinned to
  unsigned node = 0;       // 0-based over the nodes that have workers, ascending
  unsigned os_node = 0;    // OS index of that node
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
  // `level`: the groups that the workers are spread over.
  static Placement make(const Machine& machine, unsigned threads, const std::string& user_binding,
                        Level level = Level::node);

  // The same workers where they were seen to run: processors[i] is that of worker i, -1 if unknown.
  // For teams that somebody else binds. Cores that the machine does not list change nothing.
  Placement observed(const Machine& machine, const std::vector<int>& processors) const;
};

// "OMP_PROC_BIND=close" if the user bound OpenMP threads by one of OMP_PROC_BIND (other than
// false), OMP_PLACES, GOMP_CPU_AFFINITY, KMP_AFFINITY; else empty.
std::string user_openmp_binding();

}  // namespace lockstep::topology
