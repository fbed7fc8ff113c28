// Sequential reading of a file's beginning through one buffer. A GGUF header is a long run of small
// fields in front of gigabytes of weights: reading the whole file would waste memory, one system
// call per field would waste time, and a mapping would turn a file cut short by someone else into a
// signal.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "GGUF fields are read as they lie");

// Reads exactly into.size() bytes at `offset`, or throws Error(io) whose text begins with `file`.
void read_fully(int descriptor, std::uint64_t offset, std::span<std::byte> into,
                const std::filesystem::path& file);

class FileWindow {
 public:
  // `size`: the size of the file; `file`: its name for messages. Both `descriptor` and `file` must
  // outlive the window.
  FileWindow(int descriptor, std::uint64_t size, const std::filesystem::path& file);

  std::uint64_t position() const noexcept { return start_ + cursor_; }
  std::uint64_t remaining() const noexcept { return size_ - position(); }

  // All three need the bytes to be there: count <= remaining(), position <= size.
  void read(void* into, std::uint64_t count);
  void skip(std::uint64_t count) { seek(position() + count); }
  void seek(std::uint64_t position);

  template <typename T>
  T read() {
    T value;
    read(&value, sizeof(value));
    return value;
  }

 private:
  void refill();

  int descriptor_;
  std::uint64_t size_;
  const std::filesystem::path& file_;
  std::vector<std::byte> buffer_;
  std::uint64_t start_ = 0;  // where the buffer lies in the file
  std::size_t filled_ = 0;   // valid bytes in it
  std::size_t cursor_ = 0;   // next byte to hand out, <= filled_
};

}  // namespace lockstep
