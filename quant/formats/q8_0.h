// Q8_0: 32 values of 8 bits and one scale, value = d * q. Weights may use -128; activations never
// do.
//
//   byte  0   1   2    3    ...  33
//        [d (f16)][q0 ][q1 ] ... [q31]      q: int8
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "quant/formats/block.h"

namespace lockstep::quant::q8_0 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 34;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 2;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = static_cast<float>(signed_byte_at(blocks + kQuants, i)) * d;
    }
  }
}

// The largest magnitude of a block; NaN if a value is not finite. Magnitudes compare as their bits
// do, and a maximum of integers is what compilers turn into vector code.
inline float largest_magnitude(const float* values) noexcept {
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < kValues; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest < kInfinity ? std::bit_cast<float>(largest) : NAN;
}

// Rounds half away from zero, as the public reference does; the activation quantizer of rows.h is
// another thing (nearest even, f32 scale). What is left of a value after truncation is exact, so
// this is std::round() without a call for each value.
inline void encode(const float* values, const float* /*importance*/, std::byte* blocks,
                   std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = largest_magnitude(values) / 127.0f;
    store_field(blocks + kScale, f32_to_f16(d));
    const float inverse = inverse_or_zero(d);
    std::int8_t quants[kValues] = {};
    for (std::size_t i = 0; inverse != 0.0f && i < kValues; ++i) {
      const float scaled = values[i] * inverse;
      const int whole = static_cast<int>(scaled);
      const float rest = scaled - static_cast<float>(whole);
      const int away = (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
      quants[i] = static_cast<std::int8_t>(whole + away);
    }
    std::memcpy(blocks + kQuants, quants, kValues);
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    std::int32_t isum = 0;
    for (std::size_t i = 0; i < kValues; ++i) isum += signed_byte_at(row + kQuants, i) * y[i];
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::q8_0
