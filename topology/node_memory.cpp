// Anonymous mappings instead of new or aligned_alloc: an allocator hands out memory that somebody
// has touched before, and such pages already have a node.
#include "topology/node_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

namespace lockstep::topology {
namespace {

// The usual huge page of x86-64 and of aarch64 with 4 KiB pages. Elsewhere it is only an alignment.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* map(std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(address);
}

// What is mapped for a buffer of `bytes`: whole huge pages once it is large enough to have any.
std::size_t mapped_bytes(std::size_t bytes) noexcept {
  return bytes < kHugePage ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Older kernels place large mappings at any 4 KiB boundary, which costs a huge page at each end:
// map one more and give back what lies outside. `bytes` is a multiple of a huge page.
std::byte* map_aligned(std::size_t bytes) {
  std::byte* const start = map(bytes + kHugePage);
  const std::size_t misalignment = reinterpret_cast<std::uintptr_t>(start) % kHugePage;
  const std::size_t head = misalignment == 0 ? 0 : kHugePage - misalignment;
  if (head != 0) munmap(start, head);
  if (head != kHugePage) munmap(start + head + bytes, kHugePage - head);
  return start + head;
}

}  // namespace

NodeBuffer::NodeBuffer(std::size_t bytes, bool huge_pages) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes < kHugePage) {
    data_ = map(bytes);
    return;
  }
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) throw std::bad_alloc();
  data_ = map_aligned(mapped_bytes(bytes));
#ifdef MADV_HUGEPAGE
  // Advice only: a kernel without huge pages refuses it, and the memory is as good.
  static_cast<void>(
      madvise(data_, mapped_bytes(bytes), huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
#endif
}

NodeBuffer::NodeBuffer(NodeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

NodeBuffer& NodeBuffer::operator=(NodeBuffer&& other) noexcept {
  NodeBuffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  return *this;
}

NodeBuffer::~NodeBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes(size_));
}

}  // namespace lockstep::topology
