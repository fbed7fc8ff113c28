// MXFP4: 32 values of 4-bit floats (E2M1) and one scale that is a power of two (E8M0), value = e *
// q. The MX format of the OCP Microscaling specification, in the byte order of ggml.
//
//   byte  0        1         2         ...  16
//        [e (E8M0)][q0 |q16 ][q1 |q17 ] ... [q15|q31 ]      low nibble | high nibble
#pragma once

#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/e2m1.h"

namespace lockstep::quant::mxfp4 {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 17;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 1;

using e2m1::kDoubled;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float half = e2m1::half_of_e8m0(byte_at(blocks, kScale));
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const unsigned pair = byte_at(blocks + kQuants, i);
      values[i] = static_cast<float>(kDoubled[pair & 15u]) * half;
      values[i + kValues / 2] = static_cast<float>(kDoubled[pair >> 4]) * half;
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
      isum += kDoubled[pair & 15u] * y[i] + kDoubled[pair >> 4] * y[i + kValues / 2];
    }
    const float scale = e2m1::half_of_e8m0(byte_at(row, kScale)) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline std::size_t first_bad_scale(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    if (byte_at(blocks, b * kBytes + kScale) == 255) return b;
  }
  return n;
}

}  // namespace lockstep::quant::mxfp4
