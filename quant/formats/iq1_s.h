// IQ1_S: 32 points of a codebook of 2048, and a 3-bit scale with a shift for every 4 points; value
// = d * (2 * s_j + 1) * (t +- 1/8). Points are 8 values t of -1, 0 and 1.
//
//   byte  0   1   2 .......... 33  34 ................ 49
//        [d (f16)][low 8 bits    ][8 words of 16 bits    ]
//
//   Words, one per group of 32 values, little-endian: bits 3i to 3i + 2 the high bits of the index
//   of point i, bits 12 to 14 s_j, bit 15 set if the shift is -1/8.
#pragma once

#include "quant/formats/iq1_grid.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq1_s {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 50;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kLow = 2;
inline constexpr std::size_t kGroups = 34;

struct Block {
  static constexpr std::size_t kBytes = iq1_s::kBytes;
  static constexpr std::size_t kGroup = 32;
  static constexpr float kUnit = 0.125f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static unsigned group(const std::byte* block, std::size_t j) noexcept {
    return load_field<std::uint16_t>(block + kGroups + 2 * j);
  }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * ((group(block, j) >> 12) & 7u) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    for (std::size_t j = 0; j < kValues / kGroup; ++j) {
      const unsigned word = group(block, j);
      const unsigned down = (word >> 15) << 11;
      for (std::size_t i = 0; i < 4; ++i, q += 8) {
        const unsigned high = ((word >> (3 * i)) & 7u) << 8;
        store_point(q, iq1::kGrid[byte_at(block + kLow, 4 * j + i) | high | down]);
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq1_s
