// A hash of bits: equal fingerprints mean equal bits, but for one chance in 2^64. FNV-1a, 64 bits
// (Fowler, Noll, Vo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
  void add(std::span<const float> values) noexcept { add(std::as_bytes(values)); }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace lockstep
