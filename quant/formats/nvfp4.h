// NVFP4: 64 values of 4-bit floats (E2M1) in 4 groups of 16, value = sc_j * q with a scale per
// group that is an unsigned 8-bit float (E4M3).
//
//   byte  0 ... 3    4 ...... 11   12 ..... 19   20 ..... 27   28 ..... 35
//        [sc0...sc3][group 0     ][group 1     ][group 2     ][group 3     ]
//
//   Quants: byte i of a group's 8 holds values i (low nibble) and i + 8 (high).
#pragma once

#include <cmath>

#include "quant/formats/block.h"
#include "quant/formats/e2m1.h"

namespace lockstep::quant::nvfp4 {

inline constexpr std::size_t kValues = 64;
inline constexpr std::size_t kBytes = 36;
inline constexpr std::size_t kGroupScales = 0;
inline constexpr std::size_t kQuants = 4;
inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kGroups = kValues / kGroup;

using e2m1::kDoubled;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    for (std::size_t j = 0; j < kGroups; ++j, values += kGroup) {
      const float half = e2m1::half_of_ue4m3(byte_at(blocks + kGroupScales, j));
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(blocks + kQuants, j * kGroup / 2 + i);
        values[i] = static_cast<float>(kDoubled[pair & 15u]) * half;
        values[i + kGroup / 2] = static_cast<float>(kDoubled[pair >> 4]) * half;
      }
    }
  }
}

inline float vec_dot(const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    const std::int8_t* y = activations.q + b * kValues;
    for (std::size_t j = 0; j < kGroups; ++j, y += kGroup) {
      std::int32_t isum = 0;
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(row + kQuants, j * kGroup / 2 + i);
        isum += kDoubled[pair & 15u] * y[i] + kDoubled[pair >> 4] * y[i + kGroup / 2];
      }
      // Two groups share one activation scale.
      const float scale = e2m1::half_of_ue4m3(byte_at(row + kGroupScales, j)) *
                          activations.scale[b * kGroups / 2 + j / 2];
      acc = std::fma(scale, static_cast<float>(isum), acc);
    }
  }
  return acc;
}

inline std::size_t first_bad_scale(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t j = 0; j < kGroups; ++j) {
      if ((byte_at(blocks, b * kBytes + kGroupScales + j) & 127u) == 127u) return b;
    }
  }
  return n;
}

}  // namespace lockstep::quant::nvfp4
