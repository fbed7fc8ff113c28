// IQ1_M: 32 points of the codebook of IQ1_S, each with a shift of its own, and a 3-bit scale for
// every 2 points; value = d * (2 * s_j + 1) * (t +- 1/8). Points are 8 values t of -1, 0 and 1.
//
//   byte  0 ........... 31  32 ............ 47  48 ................. 55
//        [low 8 bits      ][p1|p0 ... p31|p30 ][4 words of 16 bits     ]
//
//   Points: bits 0 to 2 of nibble p_i are the high bits of the index, bit 3 is set if the shift is
//   -1/8; an even p_i is the low nibble.
//   Words, little-endian: bits 3i to 3i + 2 of word w are s_(4w + i); bits 12 to 15 are bits 4w to
//   4w + 3 of d, an f16.
#pragma once

#include "quant/formats/iq1_grid.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq1_m {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 56;
inline constexpr std::size_t kLow = 0;
inline constexpr std::size_t kHigh = 32;
inline constexpr std::size_t kScales = 48;

struct Block {
  static constexpr std::size_t kBytes = iq1_m::kBytes;
  static constexpr std::size_t kGroup = 16;
  static constexpr float kUnit = 0.125f;

  static unsigned word(const std::byte* block, std::size_t w) noexcept {
    return load_field<std::uint16_t>(block + kScales + 2 * w);
  }
  static std::uint16_t scale_bits(const std::byte* block) noexcept {
    unsigned bits = 0;
    for (std::size_t w = 0; w < 4; ++w) bits |= (word(block, w) >> 12) << (4 * w);
    return static_cast<std::uint16_t>(bits);
  }
  static float scale(const std::byte* block) noexcept { return f16_to_f32(scale_bits(block)); }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * ((word(block, j / 4) >> (3 * (j % 4))) & 7u) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    // The bits of a nibble, the shift on top, are the high bits of the index into our grid.
    for (std::size_t i = 0; i < kValues / 8; i += 2, q += 16) {
      const unsigned high = byte_at(block + kHigh, i / 2);
      store_point(q, iq1::kGrid[byte_at(block + kLow, i) | ((high & 15u) << 8)]);
      store_point(q + 8, iq1::kGrid[byte_at(block + kLow, i + 1) | ((high >> 4) << 8)]);
    }
  }
};

inline std::size_t first_bad_scale(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    if (!std::isfinite(Block::scale(blocks + b * kBytes))) return b;
  }
  return n;
}

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;

}  // namespace lockstep::quant::iq1_m
