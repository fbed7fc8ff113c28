// How much memory the process may still take before something kills it, and which limit that is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace lockstep::topology {

struct MemoryBudget {
  std::uint64_t bytes = UINT64_MAX;  // UINT64_MAX: nothing tells
  // "memory of the machine", "limit of the control group /sys/fs/cgroup/job_7", ...
  std::string reason;
};

// Where the figures are read; parameters so that a fake tree can be tested.
struct MemorySources {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path nodes = "/sys/devices/system/node";
};

// The least of: memory available on the machine; for every control group of the process (v2
// memory.max and memory.high, v1 memory.limit_in_bytes) its limit less what it uses, file cache
// that can be dropped not counted; the address space limit (RLIMIT_AS); and, if the process shall
// stay on these NUMA nodes (OS indices), what is free there or holds file cache.
MemoryBudget memory_budget(std::span<const unsigned> nodes, const MemorySources& sources = {});

}  // namespace lockstep::topology
