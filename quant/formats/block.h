// What all block formats share: reading little-endian fields out of raw block bytes. Blocks of a
// file are only byte-aligned, so every read is a copy; compilers turn it into one load.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "quant/format.h"
#include "quant/half.h"

namespace lockstep::quant {

template <class T>
inline T load_field(const std::byte* from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
inline void store_field(std::byte* to, T value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

inline float load_f16(const std::byte* from) noexcept {
  return f16_to_f32(load_field<std::uint16_t>(from));
}

inline unsigned byte_at(const std::byte* from, std::size_t i) noexcept {
  return std::to_integer<unsigned>(from[i]);
}

inline int signed_byte_at(const std::byte* from, std::size_t i) noexcept {
  return static_cast<std::int8_t>(byte_at(from, i));
}

inline bool is_finite_f16(const std::byte* at) noexcept {
  return (load_field<std::uint16_t>(at) & 0x7c00u) != 0x7c00u;
}

// The first of n blocks whose f16 at any of `offsets` is NaN or infinite; n if there is none.
template <std::size_t kBlockBytes, std::size_t... kOffsets>
std::size_t first_bad_f16(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    const std::byte* block = blocks + b * kBlockBytes;
    if (!(is_finite_f16(block + kOffsets) && ...)) return b;
  }
  return n;
}

// The value of largest magnitude, sign kept; the first one if several tie. NaN if any value is NaN
// or infinite, so that an encoder can mark the block instead of computing garbage.
inline float signed_extreme(const float* values, std::size_t n) noexcept {
  float extreme = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return NAN;
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  return extreme;
}

struct Range {
  float min, max;
};

// The smallest and the largest value; both NaN if any value is NaN or infinite, as above.
inline Range range_of(const float* values, std::size_t n) noexcept {
  Range range{values[0], values[0]};
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return {NAN, NAN};
    if (values[i] < range.min) range.min = values[i];
    if (values[i] > range.max) range.max = values[i];
  }
  return range;
}

// 1 / scale, or 0 where that is no finite number: a zero or subnormal scale encodes zeros.
inline float inverse_or_zero(float scale) noexcept {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

}  // namespace lockstep::quant
