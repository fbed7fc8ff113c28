// From policies to calls of the kernel.
#include "runtime/page_policy.h"

#include <algorithm>

#include "topology/memory_policy.h"
#include "topology/residency.h"

namespace lockstep {
namespace {

// One write a page, as a program does that fills its memory in one thread.
void touch(const topology::NodeBuffer& buffer) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < buffer.size(); at += kPage) {
    *const_cast<volatile std::byte*>(buffer.data() + at) = std::byte{0};
  }
}

}  // namespace

PagePolicy::PagePolicy(const EngineOptions& options, const topology::Machine& machine,
                       const topology::Placement& placement)
    : policy_(options.numa),
      huge_pages_(options.huge_pages),
      several_(machine.is_this_system && machine.nodes.size() > 1),
      nodes_(placement.nodes) {
  for (const topology::Worker& worker : placement.workers) nodes_[worker.node] = worker.os_node;
}

topology::NodeBuffer PagePolicy::allocate(std::size_t bytes, unsigned os_node) const {
  topology::NodeBuffer buffer = allocate(bytes);
  place(buffer.data(), bytes, os_node);
  return buffer;
}

topology::NodeBuffer PagePolicy::allocate(std::size_t bytes) const {
  topology::NodeBuffer buffer(bytes, huge_pages_);
  if (several_ && policy_ == NumaPolicy::interleave) {
    topology::interleave_nodes(buffer.data(), bytes, nodes_);
  }
  if (policy_ == NumaPolicy::none) touch(buffer);
  return buffer;
}

void PagePolicy::place(std::byte* data, std::size_t bytes, unsigned os_node) const noexcept {
  const bool own = policy_ != NumaPolicy::interleave && policy_ != NumaPolicy::none;
  if (several_ && own) topology::prefer_node(data, bytes, os_node);
}

std::size_t PagePolicy::copies() const noexcept {
  return policy_ == NumaPolicy::replicate ? nodes_.size() : 1;
}

MemoryCount::MemoryCount(const std::vector<unsigned>& nodes) {
  for (const unsigned node : nodes) report_.nodes.push_back({node, 0, 0});
}

void MemoryCount::add(const std::byte* data, std::size_t bytes, unsigned os_node) {
  const topology::Residency residency = topology::residency_of(data, bytes);
  if (!residency.unknown.empty()) report_.unknown = residency.unknown;
  const auto owner = std::ranges::find(report_.nodes, os_node, &NodeBytes::node);
  if (owner == report_.nodes.end()) return;
  for (const auto& [node, on_node] : residency.bytes_on) owner->owned += on_node;
  owner->local += residency.on(os_node);
  report_.untouched += residency.untouched;
  ranges_.push_back({data, bytes});
}

MemoryReport MemoryCount::report() const {
  MemoryReport report = report_;
  report.huge_pages = topology::huge_page_bytes(ranges_);
  return report;
}

std::uint64_t MemoryReport::owned() const noexcept {
  std::uint64_t sum = 0;
  for (const NodeBytes& one : nodes) sum += one.owned;
  return sum;
}

std::uint64_t MemoryReport::remote() const noexcept {
  std::uint64_t sum = 0;
  for (const NodeBytes& one : nodes) sum += one.owned - one.local;
  return sum;
}

}  // namespace lockstep
