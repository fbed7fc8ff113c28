// A hash of result bits: equal fingerprints mean equal bits. FNV-1a, 64 bits (Fowler, Noll, Vo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

class Fingerprint {
 public:
  void add(std::span<const float> values) noexcept {
    for (const std::byte byte : std::as_bytes(values)) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace lockstep
