// Memory for weights and caches under the NUMA policy of an engine. What the kernel refuses is left
// to first touch by the right worker; residency.h tells what came of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/lockstep.h"
#include "topology/machine.h"
#include "topology/node_memory.h"
#include "topology/placement.h"

namespace lockstep {

class PagePolicy {
 public:
  PagePolicy(const EngineOptions& options, const topology::Machine& machine,
             const topology::Placement& placement);

  // Memory that the workers of this node (OS index) read. Throws std::bad_alloc.
  topology::NodeBuffer allocate(std::size_t bytes, unsigned os_node) const;
  // Memory of which parts are then given to nodes with place(), before anybody touches them.
  topology::NodeBuffer allocate(std::size_t bytes) const;
  void place(std::byte* data, std::size_t bytes, unsigned os_node) const noexcept;

  // Copies of all weights.
  std::size_t copies() const noexcept;
  // The nodes that have workers (OS indices), in the order of Worker::node.
  const std::vector<unsigned>& nodes() const noexcept { return nodes_; }

 private:
  NumaPolicy policy_;
  bool huge_pages_;
  bool several_;  // the machine has more than one node
  std::vector<unsigned> nodes_;
};

// By NUMA node that has workers: what memory it owns and how much of that is local.
class MemoryCount {
 public:
  explicit MemoryCount(const std::vector<unsigned>& nodes);
  // Adds memory that the workers of this node read.
  void add(const std::byte* data, std::size_t bytes, unsigned os_node);
  // All that was added, with its huge pages.
  MemoryReport report() const;

 private:
  MemoryReport report_;
  std::vector<std::span<const std::byte>> ranges_;
};

}  // namespace lockstep
