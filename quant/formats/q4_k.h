// Q4_K: 256 values of 4 bits in 8 groups of 32; value = d * sc_j * q - dmin * m_j with a 6-bit
// scale and a 6-bit minimum per group.
//
//   byte  0   1   2      3   4 ... 15     16 ............... 47   48 ... 79   80 ... 111  112 ...
//   143
//        [d (f16)][dmin (f16)][12 x 6+6 bit][groups 0|1         ][groups 2|3][groups 4|5][groups
//        6|7]
//
//   Quants: byte i of a 32-byte run holds value i of the even group (low nibble) and of the odd one
//   (high). Scales: bytes s0..s11;  j < 4: sc_j = s_j & 63,                          m_j = s_{j+4}
//   & 63
//                           j > 3: sc_j = s_{j+4} & 15 | s_{j-4} >> 6 << 4,  m_j = s_{j+4} >> 4 |
//                           s_j >> 6 << 4
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q4_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 144;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kGroupScales = 4;
inline constexpr std::size_t kQuants = 16;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

struct GroupScale {
  int scale, min;
};

inline GroupScale group_scale(const std::byte* block, std::size_t j) noexcept {
  const std::byte* s = block + kGroupScales;
  if (j < 4) {
    return {static_cast<int>(byte_at(s, j) & 63u), static_cast<int>(byte_at(s, j + 4) & 63u)};
  }
  return {static_cast<int>((byte_at(s, j + 4) & 15u) | (byte_at(s, j - 4) >> 6 << 4)),
          static_cast<int>((byte_at(s, j + 4) >> 4) | (byte_at(s, j) >> 6 << 4))};
}

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned pair = byte_at(block + kQuants, j / 2 * kGroup + i);
  return static_cast<int>(j % 2 == 0 ? pair & 15u : pair >> 4);
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    const float d = load_f16(blocks + kScale);
    const float dmin = load_f16(blocks + kMin);
    for (std::size_t j = 0; j < kGroups; ++j) {
      const GroupScale group = group_scale(blocks, j);
      const float scale = d * static_cast<float>(group.scale);
      const float min = dmin * static_cast<float>(group.min);
      for (std::size_t i = 0; i < kGroup; ++i) {
        *values++ = scale * static_cast<float>(quant(blocks, j, i)) - min;
      }
    }
  }
}

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
      const GroupScale group = group_scale(row, j);
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
