// Q2_K: 256 values of 2 bits in 16 groups of 16; value = d * sc_j * q - dmin * m_j with a 4-bit
// scale and a 4-bit minimum per group.
//
//   byte  0 .............. 15  16 ........... 79  80  81  82     83
//        [m_j | sc_j nibbles  ][q                ][d (f16)][dmin (f16)]
//
//   Groups: the scale is the low nibble, the minimum the high one.
//   Quants: the two halves of 128 values are stored alike: value i of a half is bits 2c and 2c + 1
//   of q[32 * half + i % 32], where c = i / 32.
#pragma once

#include "quant/formats/block.h"
#include "quant/formats/scale_min.h"

namespace lockstep::quant::q2_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 84;
inline constexpr std::size_t kGroupScales = 0;
inline constexpr std::size_t kQuants = 16;
inline constexpr std::size_t kScale = 80;
inline constexpr std::size_t kMin = 82;
inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kGroups = kValues / kGroup;

inline scale_min::GroupScale group_scale(const std::byte* block, std::size_t j) noexcept {
  const unsigned pair = byte_at(block + kGroupScales, j);
  return {static_cast<int>(pair & 15u), static_cast<int>(pair >> 4)};
}

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned four = byte_at(block + kQuants, 32 * (j / 8) + j % 2 * kGroup + i);
  return static_cast<int>((four >> (2 * (j % 8 / 2))) & 3u);
}

inline constexpr auto decode = scale_min::decode<kBytes, kScale, kMin, kGroup, group_scale, quant>;
inline constexpr auto vec_dot =
    scale_min::vec_dot_by_32<kBytes, kScale, kMin, kGroup, group_scale, quant>;

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q2_k
