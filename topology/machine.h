// The machine as hwloc sees it, reduced to what placement needs. A value, never a global: two
// engines can share a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::topology {

// One physical core, or what of it the process may use.
struct Core {
  unsigned os_index = 0;  // hwloc's OS index of the core, or its logical index if unknown
  unsigned node = 0;      // index into Machine::nodes
  std::vector<unsigned> processors;  // OS indices of its allowed hardware threads, ascending
  unsigned package = 0;              // hwloc's logical index of its socket
  unsigned cache = 0;                // and of its last-level cache, or the node's if there is none
};

// One NUMA node. Nodes without cores (CXL, HBM) or without memory are listed too.
struct MemoryNode {
  unsigned os_index = 0;
  std::uint64_t memory_bytes = 0;  // 0 also where a cpuset forbids the node
  std::vector<unsigned> cores;     // indices into Machine::cores
};

struct Machine {
  std::string cpu_model;  // "" if unknown
  unsigned packages = 0;
  // Only cores with at least one allowed processor, in hwloc's logical order. Where the allowed
  // cores are of several kinds, only those of the fastest kind: a team waits for its slowest
  // worker.
  std::vector<Core> cores;
  std::size_t slow_cores = 0;     // allowed cores of slower kinds, left out of `cores`
  std::vector<MemoryNode> nodes;  // ascending OS index, never empty
  std::size_t total_cores = 0;    // physical cores of the whole machine, allowed or not
  std::size_t total_processors = 0;
  std::size_t mask_processors = 0;     // processors in the inherited affinity mask
  std::size_t allowed_processors = 0;  // that the system (a cgroup's cpuset, say) allows
  bool is_this_system = true;  // false for HWLOC_SYNTHETIC and HWLOC_XMLFILE: pinning is a no-op
  bool selected = false;       // cut down by select()
  bool smt = false;            // every hardware thread is listed as a core of its own

  // The affinity mask leaves out some of what the system allows: somebody bound this process.
  bool is_bound() const noexcept { return mask_processors < allowed_processors; }

  // Reads the machine: hwloc's allowed set intersected with `mask` or, if that is empty, with the
  // calling thread's affinity mask (synthetic and XML topologies: the allowed set alone). Throws
  // std::runtime_error with the reason.
  static Machine detect(const std::vector<unsigned>& mask = {});
};

}  // namespace lockstep::topology
