// IQ4_NL: 32 indices of 4 bits into a fixed table of 16 levels and one scale, value = d *
// level[index]. The levels lie closer together near zero, where most weights are.
//
//   byte  0   1   2         3         ...  17
//        [d (f16)][i0 |i16 ][i1 |i17 ] ... [i15|i31 ]      low nibble | high nibble
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::iq4_nl {

inline constexpr std::size_t kValues = 32;
inline constexpr std::size_t kBytes = 18;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 2;

// Part of the file format: `kvalues_iq4nl` of ggml, which IQ4_XS uses too.
inline constexpr std::int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_f16(blocks + kScale);
    for (std::size_t i = 0; i < kValues / 2; ++i) {
      const unsigned pair = byte_at(blocks + kQuants, i);
      values[i] = d * static_cast<float>(kLevels[pair & 15u]);
      values[i + kValues / 2] = d * static_cast<float>(kLevels[pair >> 4]);
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
      isum += kLevels[pair & 15u] * y[i] + kLevels[pair >> 4] * y[i + kValues / 2];
    }
    const float scale = load_f16(row + kScale) * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq4_nl
