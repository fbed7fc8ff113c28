// mbind(2) by its number: libnuma would be one more library for one call.
#include "topology/memory_policy.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

namespace lockstep::topology {
namespace {

// From linux/mempolicy.h.
constexpr int kPreferred = 1;
constexpr int kInterleave = 3;

constexpr unsigned kMaxNodes = 1024;  // what Linux can be built for
constexpr unsigned kWordBits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, kMaxNodes / kWordBits>;

std::uintptr_t page_up(std::uintptr_t address) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return (address + page - 1) / page * page;
}

bool bind(std::byte* data, std::size_t bytes, int policy,
          std::span<const unsigned> nodes) noexcept {
#ifdef SYS_mbind
  NodeMask mask{};
  for (const unsigned node : nodes) {
    if (node >= kMaxNodes) return false;
    mask[node / kWordBits] |= 1ul << node % kWordBits;
  }
  const auto begin = page_up(reinterpret_cast<std::uintptr_t>(data));
  const auto end = page_up(reinterpret_cast<std::uintptr_t>(data) + bytes);
  if (begin >= end) return true;
  return syscall(SYS_mbind, begin, end - begin, policy, mask.data(), kMaxNodes + 1, 0) == 0;
#else
  static_cast<void>(data), static_cast<void>(bytes), static_cast<void>(policy);
  static_cast<void>(nodes);
  errno = ENOSYS;
  return false;
#endif
}

std::string probe() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  // Without nodes "preferred" means the node of whoever touches: nothing that could be missing.
  const bool works = bind(static_cast<std::byte*>(memory), page, kPreferred, {});
  const int error = errno;
  munmap(memory, page);
  if (works) return {};
  const char* const what = error == ENOSYS ? "not supported" : "not permitted";
  return std::string(what) + " (" + std::strerror(error) + ")";
}

}  // namespace

bool prefer_node(std::byte* data, std::size_t bytes, unsigned node) noexcept {
  return bind(data, bytes, kPreferred, {&node, 1});
}

bool interleave_nodes(std::byte* data, std::size_t bytes,
                      std::span<const unsigned> nodes) noexcept {
  return bind(data, bytes, kInterleave, nodes);
}

const std::string& memory_policy_refusal() {
  static const std::string refusal = probe();
  return refusal;
}

}  // namespace lockstep::topology
