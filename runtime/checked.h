// Arithmetic on sizes that come from a file: nothing wraps, nothing is undefined.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  if (a > UINT64_MAX - b) return std::nullopt;
  return a + b;
}

inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  if (b != 0 && a > UINT64_MAX / b) return std::nullopt;
  return a * b;
}

// The next multiple of `alignment`, which is a power of two; `value` itself if it is one.
inline std::optional<std::uint64_t> checked_align(std::uint64_t value,
                                                  std::uint64_t alignment) noexcept {
  const std::optional<std::uint64_t> up = checked_add(value, alignment - 1);
  if (!up) return std::nullopt;
  return *up & ~(alignment - 1);
}

}  // namespace lockstep
