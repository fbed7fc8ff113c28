// Q4_0: 32 values of 4 bits and one scale, value = d * (q - 8).
//
//   byte  0   1   2         3         ...  17
//        [d (f16)][q0 |q16 ][q1 |q17 ] ... [q15|q31 ]      low nibble | high nibble
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q4_0 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 18;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 2;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const unsigned pair = byte_at(blocks + kQuants, i);
      values[i] = static_cast<float>(static_cast<int>(pair & 15u) - 8) * d;
      values[i + kValues / 2] = static_cast<float>(static_cast<int>(pair >> 4) - 8) * d;
    }
  }
}

// The value of largest magnitude becomes -8 exactly, so the scale carries its negated sign.
inline void encode(const float* values, const float* /*importance*/, std::byte* blocks,
                   std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = signed_extreme(values, kValues) / -8.0f;
    store_field(blocks + kScale, f32_to_f16(d));
    const float inverse = inverse_or_zero(d);
    const auto quant = [&](std::size_t i) noexcept {
      // NaN scales have a zero inverse, but zero times infinity would be NaN again.
      const float shifted = inverse == 0.0f ? 8.5f : values[i] * inverse + 8.5f;
      return static_cast<unsigned>(std::min(15, static_cast<int>(shifted)));
    };
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      blocks[kQuants + i] = static_cast<std::byte>(quant(i) | (quant(i + kValues / 2) << 4));
    }
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    std::int32_t isum = 0;
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const unsigned pair = byte_at(row + kQuants, i);
      isum += (static_cast<int>(pair & 15u) - 8) * y[i];
      isum += (static_cast<int>(pair >> 4) - 8) * y[i + kValues / 2];
    }
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::q4_0
