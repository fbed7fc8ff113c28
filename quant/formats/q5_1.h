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

namespace lockstep::quant::q5_1 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 24;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kMin = 2;
inline constexpr std::size_t kFifthBits = 4;
inline constexpr std::size_t kQuants = 8;

struct Pair {
  int first, second;  // values i and i + 16
};

inline Pair quants(const std::byte* block, std::uint32_t fifth_bits, std::size_t i) noexcept {
  const unsigned pair = byte_at(block + kQuants, i);
  const std::uint32_t fifth = fifth_bits >> i;
  return {static_cast<int>((pair & 15u) | ((fifth & 1u) << 4)),
          static_cast<int>((pair >> 4) | ((fifth >> 16 & 1u) << 4))};
}

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    const float m = load_f16(blocks + kMin);
    const auto fifth_bits = load_field<std::uint32_t>(blocks + kFifthBits);
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const Pair pair = quants(blocks, fifth_bits, i);
      values[i] = static_cast<float>(pair.first) * d + m;
      values[i + kValues / 2] = static_cast<float>(pair.second) * d + m;
    }
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
    std::uint32_t fifth_bits = 0;
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const std::uint32_t first = quant(i);
      const std::uint32_t second = quant(i + kValues / 2);
      blocks[kQuants + i] = static_cast<std::byte>((first & 15u) | ((second & 15u) << 4));
      fifth_bits |= (first >> 4 << i) | (second >> 4 << (i + kValues / 2));
    }
    store_field(blocks + kFifthBits, fifth_bits);
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    const auto fifth_bits = load_field<std::uint32_t>(row + kFifthBits);
    std::int32_t isum = 0;
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const Pair pair = quants(row, fifth_bits, i);
      isum += pair.first * y[i] + pair.second * y[i + kValues / 2];
    }
    const float da = activations.scale[b];
    const std::int32_t total = activations.sums[2 * b] + activations.sums[2 * b + 1];
    acc = std::fma(load_f16(row + kScale) * da, static_cast<float>(isum), acc);
    acc = std::fma(load_f16(row + kMin) * da, static_cast<float>(total), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale, kMin>;

}  // namespace lockstep::quant::q5_1
