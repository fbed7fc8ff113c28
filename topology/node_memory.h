// Anonymous memory for weights and caches: page-aligned, huge pages advised, untouched until its
// owner touches it, so that first touch puts each page on the toucher's node.
#pragma once

#include <cstddef>

namespace lockstep::topology {

class NodeBuffer {
 public:
  NodeBuffer() noexcept = default;
  // Maps `bytes` zero bytes (0 is allowed). Throws std::bad_alloc. Without `huge_pages` the kernel
  // is told to use small ones.
  explicit NodeBuffer(std::size_t bytes, bool huge_pages = true);
  NodeBuffer(NodeBuffer&& other) noexcept;
  NodeBuffer& operator=(NodeBuffer&& other) noexcept;
  ~NodeBuffer();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lockstep::topology
