// Q5_0: 32 values of 5 bits and one scale, value = d * (q - 16).
//
//   byte  0   1   2 ........... 5   6         7         ...  21
//        [d (f16)][fifth bits (u32)][q0 |q16 ][q1 |q17 ] ... [q15|q31 ]   low nibble | high nibble
//
//   The fifth bit of value i is bit i of the little-endian word.
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/five_bits.h"

namespace lockstep::quant::q5_0 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 22;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 2;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    five_bits::decode(blocks + kQuants, values,
                      [d](int q) noexcept { return static_cast<float>(q - 16) * d; });
  }
}

// The value of largest magnitude becomes -16 exactly, so the scale carries its negated sign.
inline void encode(const float* values, const float* /*importance*/, std::byte* blocks,
                   std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = signed_extreme(values, kValues) / -16.0f;
    store_field(blocks + kScale, f32_to_f16(d));
    const float inverse = inverse_or_zero(d);
    const auto quant = [&](std::size_t i) noexcept {
      // A zero inverse also stands for NaN scales, which must not reach the product.
      const float shifted = inverse == 0.0f ? 16.5f : values[i] * inverse + 16.5f;
      return static_cast<std::uint32_t>(std::min(31, static_cast<int>(shifted)));
    };
    five_bits::encode(blocks + kQuants, quant);
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    const std::int32_t isum = five_bits::products(row + kQuants, 16, y);
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::q5_0
