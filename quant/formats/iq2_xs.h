// IQ2_XS: 32 points of a codebook of 512 with signs, and a 4-bit scale for every 2 points; value =
// d
// * (2 * s_j + 1) / 8 * (+-level). Points are 8 values of the levels 8, 25 and 43.
//
//   byte  0   1   2 ............ 65  66 ......... 73
//        [d (f16)][32 x 16 bits    ][s1|s0 ... s15|s14]
//
//   Points: little-endian words, bits 0 to 8 the index, bits 9 to 15 the signs, of which the eighth
//   follows (grid.h). Scales: an even s_j is the low nibble.
#pragma once

#include "quant/formats/iq2_grids.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq2_xs {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 74;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kPoints = 2;
inline constexpr std::size_t kGroupScales = 66;

struct Block {
  static constexpr std::size_t kBytes = iq2_xs::kBytes;
  static constexpr std::size_t kGroup = 16;
  static constexpr float kUnit = 0.125f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * nibble_at(block + kGroupScales, j) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    for (std::size_t i = 0; i < kValues / 8; ++i, q += 8) {
      const unsigned word = load_field<std::uint16_t>(block + kPoints + 2 * i);
      store_point(q, with_signs(iq2::kGridXs[word & 511u], kEvenSignMasks[word >> 9]));
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq2_xs
