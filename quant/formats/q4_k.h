// Q4_K: 256 values of 4 bits in 8 groups of 32; value = d * sc_j * q - dmin * m_j with a 6-bit
// scale and a 6-bit minimum per group.
//
//   byte  0   1   2      3   4 ... 15     16 ............... 47   48 ... 79   80 ... 111  112 ...
//   143
//        [d (f16)][dmin (f16)][12 x 6+6 bit][groups 0|1         ][groups 2|3][groups 4|5][groups
//        6|7]
//
//   Quants: byte i of a 32-byte run holds value i of the even group (low nibble) and of the odd one
//   (high). Scales and minima: scale_min.h.
#pragma once

#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/scale_min.h"

namespace lockstep::quant::q4_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 144;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kGroupScales = 4;
inline constexpr std::size_t kQuants = 16;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

inline scale_min::GroupScale group_scale(const std::byte* block, std::size_t j) noexcept {
  return scale_min::six_bit_group_scale(block + kGroupScales, j);
}

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned pair = byte_at(block + kQuants, j / 2 * kGroup + i);
  return static_cast<int>(j % 2 == 0 ? pair & 15u : pair >> 4);
}

inline constexpr auto decode = scale_min::decode<kBytes, kScale, kMin, kGroup, group_scale, quant>;

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    std::int32_t isum = 0;
    std::int32_t msum = 0;
    for (std::size_t j = 0; j < kGroups; ++j, y += kGroup) {
      std::int32_t products = 0;
      std::int32_t total = 0;
      for (std::size_t i = 0; i < kGroup; ++i) {
        products += quant(row, j, i) * y[i];
        total += y[i];
      }
      const scale_min::GroupScale group = group_scale(row, j);
      isum += group.scale * products;
      msum += group.min * total;
    }
    const float da = activations.scale[b];
    acc = std::fma(load_f16(row + kScale) * da, static_cast<float>(isum), acc);
    acc = std::fma(-(load_f16(row + kMin) * da), static_cast<float>(msum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q4_k
