// IQ4_XS: 256 indices of 4 bits into the levels of IQ4_NL in 8 groups of 32; value = d * (sc_j -
// 32) * level[index] with a 6-bit scale per group.
//
//   byte  0   1   2 ............. 3  4 ............ 7  8 ....... 23       120 ..... 135
//        [d (f16)][high 2 bits of sc][low 4 bits of sc][group 0     ] ... [group 7     ]
//
//   Quants: byte i of a group's 16 holds values i (low nibble) and i + 16 (high).
//   Scales: the high bits of sc_j are bits 2j and 2j + 1 of a little-endian word, the low bits are
//   nibble j % 2 of byte j / 2.
#pragma once

#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/iq4_nl.h"

namespace lockstep::quant::iq4_xs {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 136;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kScalesHigh = 2;
inline constexpr std::size_t kScalesLow = 4;
inline constexpr std::size_t kQuants = 8;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

using iq4_nl::kLevels;

// sc_j - 32.
inline int group_scale(const std::byte* block, std::size_t j) noexcept {
  const unsigned high = load_field<std::uint16_t>(block + kScalesHigh);
  const unsigned low = byte_at(block + kScalesLow, j / 2) >> (4 * (j % 2));
  return static_cast<int>((low & 15u) | (((high >> (2 * j)) & 3u) << 4)) - 32;
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t j = 0; j < kGroups; ++j, values += kGroup) {
      const float scale = d * static_cast<float>(group_scale(blocks, j));
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(blocks + kQuants, j * kGroup / 2 + i);
        values[i] = scale * static_cast<float>(kLevels[pair & 15u]);
        values[i + kGroup / 2] = scale * static_cast<float>(kLevels[pair >> 4]);
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
    for (std::size_t j = 0; j < kGroups; ++j, y += kGroup) {
      std::int32_t products = 0;
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(row + kQuants, j * kGroup / 2 + i);
        products += kLevels[pair & 15u] * y[i] + kLevels[pair >> 4] * y[i + kGroup / 2];
      }
      isum += group_scale(row, j) * products;
    }
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq4_xs
