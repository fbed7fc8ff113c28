// IQ2_S: 32 points of a codebook of 1024 with all their signs, and a 4-bit scale for every 2
// points; value = d * (2 * s_j + 1) / 8 * (+-level). Points are 8 values of the levels 8, 25
// and 43.
//
//   byte  0   1   2 .......... 33  34 ....... 65  66 ........... 73  74 ......... 81
//        [d (f16)][low 8 bits    ][signs        ][high 2 bits      ][s1|s0 ... s15|s14]
//
//   Points: index bits 8 and 9 of point i are bits 2 * (i % 4) and the next of byte i / 4; bit l of
//   its sign byte is the sign of its value l. Scales: an even s_j is the low nibble.
#pragma once

#include "quant/formats/iq2_grids.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq2_s {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 82;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kLow = 2;
inline constexpr std::size_t kSigns = 34;
inline constexpr std::size_t kHigh = 66;
inline constexpr std::size_t kGroupScales = 74;

struct Block {
  static constexpr std::size_t kBytes = iq2_s::kBytes;
  static constexpr std::size_t kGroup = 16;
  static constexpr float kUnit = 0.125f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * nibble_at(block + kGroupScales, j) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    for (std::size_t four = 0; four < kValues / 8; four += 4) {
      const unsigned high = byte_at(block + kHigh, four / 4) << 8;
      for (std::size_t i = 0; i < 4; ++i, q += 8) {
        const unsigned index = byte_at(block + kLow, four + i) | ((high >> (2 * i)) & 0x300u);
        const std::uint64_t mask = kSignMasks[byte_at(block + kSigns, four + i)];
        store_point(q, with_signs(iq2::kGridS[index], mask));
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq2_s
