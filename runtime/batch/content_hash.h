// A hash of a file's bytes in the order of the file, and of its first bytes alone: so that a file
// that only grew can be told from one that was changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/fingerprint.h"

namespace lockstep::batch {

class ContentHash {
 public:
  // `prefix`: how many first bytes get a hash of their own.
  explicit ContentHash(std::uint64_t prefix = 0) : prefix_bytes_(prefix) { note_prefix(); }

  // What lies at `offset`. Bytes that were hashed already (a second pass) are left out.
  void add(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    if (offset != bytes_) return;
    if (bytes_ < prefix_bytes_ && prefix_bytes_ - bytes_ < bytes.size()) {
      const auto first = static_cast<std::size_t>(prefix_bytes_ - bytes_);
      take(bytes.first(first));
      bytes = bytes.subspan(first);
    }
    take(bytes);
  }

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t value() const noexcept { return hash_.value(); }
  // Nothing if the file is shorter.
  std::optional<std::uint64_t> prefix() const noexcept { return prefix_; }

 private:
  void take(std::span<const std::byte> bytes) noexcept {
    hash_.add(bytes);
    bytes_ += bytes.size();
    note_prefix();
  }
  void note_prefix() noexcept {
    if (bytes_ == prefix_bytes_) prefix_ = hash_.value();
  }

  std::uint64_t prefix_bytes_;
  std::uint64_t bytes_ = 0;
  Fingerprint hash_;
  std::optional<std::uint64_t> prefix_;
};

}  // namespace lockstep::batch
