// Q5_K: 256 values of 5 bits in 8 groups of 32; value = d * sc_j * q - dmin * m_j with a 6-bit
// scale and a 6-bit minimum per group.
//
//   byte  0   1   2      3   4 ... 15     16 ....... 47  48 ............... 175
//        [d (f16)][dmin (f16)][12 x 6+6 bit][fifth bits ][low 4 bits, as in Q4_K]
//
//   Bit j of fifth-bit byte i belongs to value i of group j. Scales and minima: scale_min.h.
#pragma once

#include "quant/formats/block.h"
#include "quant/formats/scale_min.h"

namespace lockstep::quant::q5_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 176;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kGroupScales = 4;
inline constexpr std::size_t kFifthBits = 16;
inline constexpr std::size_t kQuants = 48;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

inline scale_min::GroupScale group_scale(const std::byte* block, std::size_t j) noexcept {
  return scale_min::six_bit_group_scale(block + kGroupScales, j);
}

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned pair = byte_at(block + kQuants, j / 2 * kGroup + i);
  const unsigned fifth = (byte_at(block + kFifthBits, i) >> j) & 1u;
  return static_cast<int>((j % 2 == 0 ? pair & 15u : pair >> 4) | (fifth << 4));
}

inline constexpr auto decode = scale_min::decode<kBytes, kScale, kMin, kGroup, group_scale, quant>;
inline constexpr auto vec_dot =
    scale_min::vec_dot_by_32<kBytes, kScale, kMin, kGroup, group_scale, quant>;

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q5_k
