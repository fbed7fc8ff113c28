// Opening a file that no other process may write at the same time. Two jobs with one output would
// mix their rows without any error; the second one is told instead.
#pragma once

#include <filesystem>
#include <utility>

namespace lockstep::batch {

// Owns an open file.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();

  bool is_open() const noexcept { return value_ >= 0; }
  int get() const noexcept { return value_; }
  // Gives it away: the caller closes it.
  int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_;
};

// Opens with the flags of open(2) and locks (flock); the lock ends with the descriptor. Where the
// file system knows no locks it goes without. Not open, with errno set, if the file cannot be
// opened. Throws Error(cannot_create) if another process holds the lock.
Descriptor open_locked(const std::filesystem::path& path, int flags);

// True if another process holds the lock of this open file.
bool is_locked_by_another(int descriptor);

}  // namespace lockstep::batch
