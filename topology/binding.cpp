// Affinity through the raw system calls rather than hwloc: hwloc only answers for a topology
// object, and a worker pins itself in the middle of an OpenMP region, where nothing may allocate
// more than a mask.
#include "topology/binding.h"

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <memory>

namespace lockstep::topology {
namespace {

// Far above any machine; bounds the growth of a mask and refuses nonsense before it is allocated.
constexpr unsigned kMaxProcessors = 1u << 18;

struct FreeMask {
  void operator()(cpu_set_t* mask) const noexcept { CPU_FREE(mask); }
};
using Mask = std::unique_ptr<cpu_set_t, FreeMask>;

// CPU_ALLOC is used because a cpu_set_t ends at 1024 processors, and larger machines exist.
Mask empty_mask(unsigned processors) noexcept {
  Mask mask(CPU_ALLOC(processors));
  if (mask) CPU_ZERO_S(CPU_ALLOC_SIZE(processors), mask.get());
  return mask;
}

}  // namespace

bool pin_this_thread(unsigned processor) noexcept {
  if (processor >= kMaxProcessors) return false;
  const Mask mask = empty_mask(processor + 1);
  if (!mask) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  CPU_SET_S(processor, bytes, mask.get());
  return sched_setaffinity(0, bytes, mask.get()) == 0;
}

std::optional<unsigned> current_processor() noexcept {
  const int processor = sched_getcpu();
  if (processor < 0) return std::nullopt;
  return static_cast<unsigned>(processor);
}

std::vector<unsigned> affinity_mask() {
  // The kernel answers EINVAL as long as the mask is smaller than its own.
  for (unsigned processors = 1024; processors <= kMaxProcessors; processors *= 2) {
    const Mask mask = empty_mask(processors);
    if (!mask) return {};
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    if (sched_getaffinity(0, bytes, mask.get()) == 0) {
      std::vector<unsigned> allowed;
      for (unsigned i = 0; i < processors; ++i) {
        if (CPU_ISSET_S(i, bytes, mask.get())) allowed.push_back(i);
      }
      return allowed;
    }
    if (errno != EINVAL) return {};
  }
  return {};
}

bool set_affinity_mask(const std::vector<unsigned>& processors) noexcept {
  unsigned highest = 0;
  for (const unsigned processor : processors) {
    if (processor >= kMaxProcessors) return false;
    if (processor > highest) highest = processor;
  }
  const Mask mask = empty_mask(highest + 1);
  if (processors.empty() || !mask) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(highest + 1);
  for (const unsigned processor : processors) CPU_SET_S(processor, bytes, mask.get());
  return sched_setaffinity(0, bytes, mask.get()) == 0;
}

}  // namespace lockstep::topology
