// IQ3_S: 64 points of a codebook of 512 with all their signs, and a 4-bit scale for every 8 points;
// value = d * (2 * s_j + 1) * (+-level). Points are 4 values of the odd levels 1 to 15.
//
//   byte  0   1   2 .......... 65  66 ....... 73  74 ...... 105  106 ........ 109
//        [d (f16)][low 8 bits    ][ninth bits   ][signs        ][s1|s0 ... s7|s6]
//
//   Points: the ninth bit of the index of point i is bit i % 8 of byte i / 8. Bit l of sign byte i
//   is the sign of value 8i + l. Scales: an even s_j is the low nibble.
#pragma once

#include "quant/formats/iq3_grids.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq3_s {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 110;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kLow = 2;
inline constexpr std::size_t kNinthBits = 66;
inline constexpr std::size_t kSigns = 74;
inline constexpr std::size_t kGroupScales = 106;

struct Block {
  static constexpr std::size_t kBytes = iq3_s::kBytes;
  static constexpr std::size_t kGroup = 32;
  static constexpr float kUnit = 1.0f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * nibble_at(block + kGroupScales, j) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    const std::byte* low = block + kLow;
    for (std::size_t j = 0; j < kValues / kGroup; ++j) {
      const unsigned ninth = byte_at(block + kNinthBits, j) << 8;
      for (std::size_t i = 0; i < 4; ++i, low += 2, q += 8) {
        const std::uint64_t first = iq3::kGridS[byte_at(low, 0) | ((ninth >> (2 * i)) & 256u)];
        const std::uint64_t second = iq3::kGridS[byte_at(low, 1) | ((ninth >> (2 * i + 1)) & 256u)];
        const std::uint64_t mask = kSignMasks[byte_at(block + kSigns, 4 * j + i)];
        store_point(q, with_signs(first | (second << 32), mask));
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq3_s
