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

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q2_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 84;
inline constexpr std::size_t kGroupScales = 0;
inline constexpr std::size_t kQuants = 16;
inline constexpr std::size_t kScale = 80;
inline constexpr std::size_t kMin = 82;
inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kGroups = kValues / kGroup;

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned four = byte_at(block + kQuants, 32 * (j / 8) + j % 2 * kGroup + i);
  return static_cast<int>((four >> (2 * (j % 8 / 2))) & 3u);
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    const float d = load_f16(blocks + kScale);
    const float dmin = load_f16(blocks + kMin);
    for (std::size_t j = 0; j < kGroups; ++j) {
      const unsigned group = byte_at(blocks + kGroupScales, j);
      const float scale = d * static_cast<float>(group & 15u);
      const float min = dmin * static_cast<float>(group >> 4);
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
    const std::int16_t* sums = activations.sums + b * (kValues / kActivationSumRun);
    float sum = 0;
    float min_sum = 0;
    // Two groups share one activation scale.
    for (std::size_t pair = 0; pair < kGroups / 2; ++pair) {
      std::int32_t isum = 0;
      std::int32_t msum = 0;
      for (std::size_t j = 2 * pair; j < 2 * pair + 2; ++j, y += kGroup) {
        std::int32_t products = 0;
        for (std::size_t i = 0; i < kGroup; ++i) products += quant(row, j, i) * y[i];
        const unsigned group = byte_at(row + kGroupScales, j);
        isum += static_cast<int>(group & 15u) * products;
        msum += static_cast<int>(group >> 4) * sums[j];
      }
      const float da = activations.scale[b * kGroups / 2 + pair];
      sum = std::fma(da, static_cast<float>(isum), sum);
      min_sum = std::fma(da, static_cast<float>(msum), min_sum);
    }
    acc = std::fma(load_f16(row + kScale), sum, acc);
    acc = std::fma(-load_f16(row + kMin), min_sum, acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q2_k
