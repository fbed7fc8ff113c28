// What Q5_0 and Q5_1 share: 32 quants of 5 bits, the low four in nibbles, the fifth in a word.
//
//   byte  0 ........... 3   4         5         ...  19
//        [fifth bits (u32)][q0 |q16 ][q1 |q17 ] ... [q15|q31 ]      low nibble | high nibble
//
//   The fifth bit of value i is bit i of the little-endian word.
#pragma once

#include "quant/formats/block.h"

namespace lockstep::quant::five_bits {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kNibbles = 4;  // after the fifth bits

struct Pair {
  int first, second;  // values i and i + 16
};

inline Pair unpack(const std::byte* quants, std::uint32_t fifth_bits, std::size_t i) noexcept {
  const unsigned pair = byte_at(quants + kNibbles, i);
  const std::uint32_t fifth = fifth_bits >> i;
  return {static_cast<int>((pair & 15u) | ((fifth & 1u) << 4)),
          static_cast<int>((pair >> 4) | ((fifth >> 16 & 1u) << 4))};
}

// value(q) of all 32 quants.
template <class F>
void decode(const std::byte* quants, float* values, F value) noexcept {
  const auto fifth_bits = load_field<std::uint32_t>(quants);
  for (std::size_t i = 0; i < kValues / 2; ++i) {
    const Pair pair = unpack(quants, fifth_bits, i);
    values[i] = value(pair.first);
    values[i + kValues / 2] = value(pair.second);
  }
}

// Packs quant(i), 0..31, for all 32 places.
template <class F>
void encode(std::byte* quants, F quant) noexcept {
  std::uint32_t fifth_bits = 0;
  for (std::size_t i = 0; i < kValues / 2; ++i) {
    const std::uint32_t first = quant(i);
    const std::uint32_t second = quant(i + kValues / 2);
    quants[kNibbles + i] = static_cast<std::byte>((first & 15u) | ((second & 15u) << 4));
    fifth_bits |= (first >> 4 << i) | (second >> 4 << (i + kValues / 2));
  }
  store_field(quants, fifth_bits);
}

// sum (q - offset) y
inline std::int32_t products(const std::byte* quants, int offset, const std::int8_t* y) noexcept {
  const auto fifth_bits = load_field<std::uint32_t>(quants);
  std::int32_t isum = 0;
  for (std::size_t i = 0; i < kValues / 2; ++i) {
    const Pair pair = unpack(quants, fifth_bits, i);
    isum += (pair.first - offset) * y[i] + (pair.second - offset) * y[i + kValues / 2];
  }
  return isum;
}

}  // namespace lockstep::quant::five_bits
