// What the codebook formats share: grids of points, and signs. A point is 8 consecutive values, or
// the low half of it 4, as int8 in the bytes of a 64-bit word, so that one load fetches it and one
// exclusive-or gives it its signs. The grids of the file format are published with a byte a value;
// here they are written down as codes of 2 or 3 bits a value and expanded by the compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::quant {

// Points of kPerPoint values; value i has the level that bits kBits * i and the next of its code
// name. Levels are the bytes of an int8.
template <std::size_t kPerPoint, unsigned kBits, std::size_t kPoints, std::size_t kLevels>
constexpr auto expand_grid(const std::uint16_t (&codes)[kPoints],
                           const std::uint8_t (&levels)[kLevels]) noexcept {
  std::array<std::uint64_t, kPoints> grid{};
  for (std::size_t p = 0; p < kPoints; ++p) {
    for (std::size_t i = 0; i < kPerPoint; ++i) {
      const unsigned level = (codes[p] >> (kBits * i)) & ((1u << kBits) - 1);
      grid[p] |= static_cast<std::uint64_t>(levels[level]) << (8 * i);
    }
  }
  return grid;
}

// Eight signs, bit i for value i, as a mask of 0xff for every negative value.
inline constexpr auto kSignMasks = [] {
  std::array<std::uint64_t, 256> masks{};
  for (std::size_t signs = 0; signs < masks.size(); ++signs) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((signs >> i) & 1u) masks[signs] |= std::uint64_t{0xff} << (8 * i);
    }
  }
  return masks;
}();

// The same from the signs of values 0 to 6: value 7 has the one that makes the number of negative
// values even. The encoder flips the least important value to get there, which saves a bit.
inline constexpr auto kEvenSignMasks = [] {
  std::array<std::uint64_t, 128> masks{};
  for (std::size_t signs = 0; signs < masks.size(); ++signs) {
    std::size_t parity = 0;
    for (std::size_t i = 0; i < 7; ++i) parity ^= (signs >> i) & 1u;
    masks[signs] = kSignMasks[signs | (parity << 7)];
  }
  return masks;
}();

// Changes the sign of the values under the mask. They must be 1 to 127: then two's complement
// carries nothing into a neighbour.
constexpr std::uint64_t with_signs(std::uint64_t magnitudes, std::uint64_t mask) noexcept {
  return (magnitudes ^ mask) + (mask & 0x0101010101010101u);
}

}  // namespace lockstep::quant
