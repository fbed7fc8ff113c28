// What Q2_K, Q4_K and Q5_K share: groups with an integer scale and an integer minimum, value = d *
// sc_j * q - dmin * m_j; and the 12 bytes that Q4_K and Q5_K keep eight 6-bit scales and minima in.
//
//   Bytes s0..s11:  j < 4: sc_j = s_j & 63,                          m_j = s_{j+4} & 63
//                   j > 3: sc_j = s_{j+4} & 15 | s_{j-4} >> 6 << 4,  m_j = s_{j+4} >> 4 |
//                   s_j >> 6 << 4
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::scale_min {

inline constexpr std::size_t kValues = 256;

struct GroupScale {
  int scale, min;
};

// Group j of the 12 bytes at `s`.
inline GroupScale six_bit_group_scale(const std::byte* s, std::size_t j) noexcept {
  if (j < 4) {
    return {static_cast<int>(byte_at(s, j) & 63u), static_cast<int>(byte_at(s, j + 4) & 63u)};
  }
  return {static_cast<int>((byte_at(s, j + 4) & 15u) | (byte_at(s, j - 4) >> 6 << 4)),
          static_cast<int>((byte_at(s, j + 4) >> 4) | (byte_at(s, j) >> 6 << 4))};
}

// FormatTraits::decode of a block of 256 values in groups of kGroup. kGroupScale(block, j) gives
// the GroupScale of group j, kQuant(block, j, i) value i of group j.
template <std::size_t kBytes, std::size_t kScale, std::size_t kMin, std::size_t kGroup,
          auto kGroupScale, auto kQuant>
void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    const float d = load_f16(blocks + kScale);
    const float dmin = load_f16(blocks + kMin);
    for (std::size_t j = 0; j < kValues / kGroup; ++j) {
      const GroupScale group = kGroupScale(blocks, j);
      const float scale = d * static_cast<float>(group.scale);
      const float min = dmin * static_cast<float>(group.min);
      for (std::size_t i = 0; i < kGroup; ++i) {
        *values++ = scale * static_cast<float>(kQuant(blocks, j, i)) - min;
      }
    }
  }
}

// FormatTraits::vec_dot of such a format whose activations have a scale per 32 values: the groups
// that share a scale are summed in integers, the scales' shares in f32.
template <std::size_t kBytes, std::size_t kScale, std::size_t kMin, std::size_t kGroup,
          auto kGroupScale, auto kQuant>
float vec_dot_by_32(const std::byte* row, const ActivationRow& activations,
                    std::size_t k) noexcept {
  constexpr std::size_t kShared = 32;
  constexpr std::size_t kRuns = kGroup / kActivationSumRun;
  const std::int8_t* y = activations.q;
  const std::int16_t* sums = activations.sums;
  const float* da = activations.scale;
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    float sum = 0;
    float min_sum = 0;
    for (std::size_t share = 0; share < kValues / kShared; ++share, ++da) {
      std::int32_t isum = 0;
      std::int32_t msum = 0;
      for (std::size_t g = 0; g < kShared / kGroup; ++g, y += kGroup, sums += kRuns) {
        const std::size_t j = share * (kShared / kGroup) + g;
        std::int32_t products = 0;
        for (std::size_t i = 0; i < kGroup; ++i) products += kQuant(row, j, i) * y[i];
        std::int32_t total = 0;
        for (std::size_t run = 0; run < kRuns; ++run) total += sums[run];
        const GroupScale group = kGroupScale(row, j);
        isum += group.scale * products;
        msum += group.min * total;
      }
      sum = std::fma(*da, static_cast<float>(isum), sum);
      min_sum = std::fma(*da, static_cast<float>(msum), min_sum);
    }
    acc = std::fma(load_f16(row + kScale), sum, acc);
    acc = std::fma(-load_f16(row + kMin), min_sum, acc);
  }
  return acc;
}

}  // namespace lockstep::quant::scale_min
