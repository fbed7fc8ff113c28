// Asking the kernel to place pages on NUMA nodes. Best effort: containers forbid it, and then first
// touch by the right worker has to do; residency.h tells what came of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep::topology {

// Pages of [data, data + bytes) that are touched from now on come from this node (OS index), or
// from another one when it is full. A page that begins before `data` is left alone. False if the
// kernel refuses.
bool prefer_node(std::byte* data, std::size_t bytes, unsigned node) noexcept;

// The same, page by page from these nodes in turn.
bool interleave_nodes(std::byte* data, std::size_t bytes, std::span<const unsigned> nodes) noexcept;

// Why the kernel refuses to place pages, as "not permitted (Operation not permitted)"; "" if it
// does not. Tried once per process.
const std::string& memory_policy_refusal();

}  // namespace lockstep::topology
