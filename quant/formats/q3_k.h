// Q3_K: 256 values of 3 bits in 16 groups of 16; value = d * (sc_j - 32) * (q - 4) with a 6-bit
// scale per group.
//
//   byte  0 ......... 31  32 ............ 95  96 ........ 107  108 109
//        [third bits     ][low 2 bits of q   ][16 x 6 bit     ][d (f16)]
//
//   The two halves of 128 values are stored alike. Value i of a half, quarter c = i / 32, l = i %
//   32:
//     low bits   ql[32 * half + l], bits 2c and 2c + 1
//     third bit  qh[l], bit 4 * half + c
//   Scales: bytes s0..s11; the low 4 bits of sc_j are nibble j / 8 of s_{j % 8}, the high 2 bits
//   are bits 2 * (j / 4) and the next of s_{8 + j % 4}.
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q3_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 110;
inline constexpr std::size_t kThirdBits = 0;
inline constexpr std::size_t kLow = 32;
inline constexpr std::size_t kGroupScales = 96;
inline constexpr std::size_t kScale = 108;
inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kGroups = kValues / kGroup;

// sc_j - 32.
inline int group_scale(const std::byte* block, std::size_t j) noexcept {
  const std::byte* s = block + kGroupScales;
  const unsigned low = (byte_at(s, j % 8) >> (4 * (j / 8))) & 15u;
  const unsigned high = (byte_at(s, 8 + j % 4) >> (2 * (j / 4))) & 3u;
  return static_cast<int>(low | (high << 4)) - 32;
}

// q - 4 of value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const std::size_t half = j / 8;
  const std::size_t quarter = j % 8 / 2;
  const std::size_t l = j % 2 * kGroup + i;
  const unsigned low = (byte_at(block + kLow, 32 * half + l) >> (2 * quarter)) & 3u;
  const unsigned third = (byte_at(block + kThirdBits, l) >> (4 * half + quarter)) & 1u;
  return static_cast<int>(low | (third << 2)) - 4;
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t j = 0; j < kGroups; ++j) {
      const float scale = d * static_cast<float>(group_scale(blocks, j));
      for (std::size_t i = 0; i < kGroup; ++i) {
        *values++ = scale * static_cast<float>(quant(blocks, j, i));
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
      for (std::size_t i = 0; i < kGroup; ++i) products += quant(row, j, i) * y[i];
      isum += group_scale(row, j) * products;
    }
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::q3_k
