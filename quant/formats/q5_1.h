// Q5_1: 32 values of 5 bits, one scale and one minimum, value = d * q + m.
//
//   byte  0   1   2   3   4 ........... 7   8         9         ...  23
//        [d (f16)][m (f16)][fifth bits (u32)][q0 |q16 ][q1 |q17 ] ... [q15|q31 ]
//
//   Quants: values 0-15 in the low nibbles, 16-31 in the high ones.
//   The fifth bit of value i is bit i of the little-endian word.
#pragma once

#include <algorithm>
#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/five_bits.h"

namespace lockstep::quant::q5_1 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 24;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kQuants = 4;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    const float m = load_f16(blocks + kMin);
    five_bits::decode(blocks + kQuants, values,
                      [d, m](int q) noexcept { return static_cast<float>(q) * d + m; });
  }
}

// The smallest value becomes 0, the largest 31.
inline void encode(const float* values, const float* /*importance*/, std::byte* blocks,
                   std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const Range range = range_of(values, kValues);
    const float d = (range.max - range.min) / 31.0f;
    store_field(blocks + kScale, f32_to_f16(d));
    store_field(blocks + kMin, f32_to_f16(range.min));
    const float inverse = inverse_or_zero(d);
    const auto quant = [&](std::size_t i) noexcept {
      // A zero inverse also stands for NaN and infinite scales, which must not reach the product.
      const float shifted = inverse == 0.0f ? 0.0f : (values[i] - range.min) * inverse + 0.5f;
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
    const std::int32_t isum = five_bits::products(row + kQuants, 0, y);
    const float da = activations.scale[b];
    const std::int32_t total = activations.sums[2 * b] + activations.sums[2 * b + 1];
    acc = std::fma(load_f16(row + kScale) * da, static_cast<float>(isum), acc);
    acc = std::fma(load_f16(row + kMin) * da, static_cast<float>(total), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q5_1
