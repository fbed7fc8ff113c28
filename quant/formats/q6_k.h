// Q6_K: 256 values of 6 bits in 16 groups of 16; value = d * sc_j * (q - 32) with an int8 scale per
// group.
//
//   byte  0 ............ 127  128 ......... 191  192 ........ 207  208  209
//        [low 4 bits of q   ][high 2 bits of q ][sc0 ... sc15    ][d (f16)]
//
//   The two halves of 128 values are stored alike. Value i of a half, quarter c = i / 32, l = i %
//   32:
//     low bits   ql[64 * half + 32 * (c % 2) + l], nibble c / 2
//     high bits  qh[32 * half + l], bits 2c and 2c + 1
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q6_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 210;
inline constexpr std::size_t kLow = 0;
inline constexpr std::size_t kHigh = 128;
inline constexpr std::size_t kGroupScales = 192;
inline constexpr std::size_t kScale = 208;
inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kGroups = kValues / kGroup;

// q - 32 of value i.
inline int quant(const std::byte* block, std::size_t i) noexcept {
  const std::size_t half = i / 128;
  const std::size_t quarter = i % 128 / 32;
  const std::size_t l = i % 32;
  const unsigned low = byte_at(block + kLow, 64 * half + 32 * (quarter % 2) + l);
  const unsigned high = byte_at(block + kHigh, 32 * half + l);
  const unsigned q = ((low >> (4 * (quarter / 2))) & 15u) | (((high >> (2 * quarter)) & 3u) << 4);
  return static_cast<int>(q) - 32;
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t i = 0; i < kValues; ++i) {
      const float scale = d * static_cast<float>(signed_byte_at(blocks + kGroupScales, i / kGroup));
      values[i] = scale * static_cast<float>(quant(blocks, i));
    }
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    float sum = 0;
    // Two groups share one activation scale.
    for (std::size_t pair = 0; pair < kGroups / 2; ++pair) {
      std::int32_t isum = 0;
      for (std::size_t j = 2 * pair; j < 2 * pair + 2; ++j) {
        std::int32_t products = 0;
        for (std::size_t i = j * kGroup; i < (j + 1) * kGroup; ++i)
          products += quant(row, i) * y[i];
        isum += signed_byte_at(row + kGroupScales, j) * products;
      }
      sum = std::fma(activations.scale[b * kGroups / 2 + pair], static_cast<float>(isum), sum);
    }
    acc = std::fma(load_f16(row + kScale), sum, acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::q6_k
