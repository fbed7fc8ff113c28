// Q5_K: 256 values of 5 bits in 8 groups of 32; value = d * sc_j * q - dmin * m_j with a 6-bit
// scale and a 6-bit minimum per group.
//
//   byte  0   1   2      3   4 ... 15     16 ....... 47  48 ............... 175
//        [d (f16)][dmin (f16)][12 x 6+6 bit][fifth bits ][low 4 bits, as in Q4_K]
//
//   Bit j of fifth-bit byte i belongs to value i of group j. Scales and minima are packed as in
//   Q4_K.
#pragma once

#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/q4_k.h"

namespace lockstep::quant::q5_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 176;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kFifthBits = 16;
inline constexpr std::size_t kQuants = 48;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

using q4_k::group_scale;
using q4_k::GroupScale;
static_assert(q4_k::kGroupScales == 4 && kBytes == q4_k::kBytes + kGroup);

// Value i of group j.
inline int quant(const std::byte* block, std::size_t j, std::size_t i) noexcept {
  const unsigned pair = byte_at(block + kQuants, j / 2 * kGroup + i);
  const unsigned fifth = (byte_at(block + kFifthBits, i) >> j) & 1u;
  return static_cast<int>((j % 2 == 0 ? pair & 15u : pair >> 4) | (fifth << 4));
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
    const std::int16_t* sums = activations.sums + b * (kValues / kActivationSumRun);
    float sum = 0;
    float min_sum = 0;
    // One group, one activation scale.
    for (std::size_t j = 0; j < kGroups; ++j, y += kGroup) {
      std::int32_t products = 0;
      for (std::size_t i = 0; i < kGroup; ++i) products += quant(row, j, i) * y[i];
      const GroupScale group = group_scale(row, j);
      const std::int32_t total = sums[2 * j] + sums[2 * j + 1];
      const float da = activations.scale[b * kGroups + j];
      sum = std::fma(da, static_cast<float>(group.scale * products), sum);
      min_sum = std::fma(da, static_cast<float>(group.min * total), min_sum);
    }
    acc = std::fma(load_f16(row + kScale), sum, acc);
    acc = std::fma(-load_f16(row + kMin), min_sum, acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q5_k
