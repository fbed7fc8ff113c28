// Q8_K: 256 values of 8 bits, an f32 scale and the sums of each 16 values; value = d * q. The
// public tools use it for activations only; it is here to be read and written, not to be multiplied
// with.
//
//   byte  0 ... 3   4 ... 259     260 ......... 291
//        [d (f32) ][q0 ... q255 ][sum0 ... sum15   ]      q: int8, sum: int16
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q8_k {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 292;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kQuants = 4;
inline constexpr std::size_t kSums = 260;

inline void decode(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float d = load_field<float>(blocks + kScale);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = d * static_cast<float>(signed_byte_at(blocks + kQuants, i));
    }
  }
}

// The value of largest magnitude becomes -127, so the scale carries its negated sign. Rounds to
// nearest even: adding 1.5 * 2^23 leaves the rounded integer in the low mantissa bits.
inline void encode(const float* values, const float* /*importance*/, std::byte* blocks,
                   std::size_t n) noexcept {
  constexpr float kRounder = 12582912.0f;
  for (; n >= kValues; n -= kValues, blocks += kBytes, values += kValues) {
    const float extreme = signed_extreme(values, kValues);
    const float inverse = -127.0f / extreme;
    const bool usable = std::isfinite(inverse);  // not for zero, NaN, or a magnitude near zero
    float d = 0.0f;
    if (usable) d = 1.0f / inverse;
    if (std::isnan(extreme)) d = extreme;
    store_field(blocks + kScale, d);
    for (std::size_t run = 0; run < kValues / kActivationSumRun; ++run) {
      int sum = 0;
      for (std::size_t i = run * kActivationSumRun; i < (run + 1) * kActivationSumRun; ++i) {
        int q = 0;
        if (usable) {
          q = std::min(127, std::bit_cast<std::int32_t>(values[i] * inverse + kRounder) -
                                std::bit_cast<std::int32_t>(kRounder));
        }
        blocks[kQuants + i] = static_cast<std::byte>(q);
        sum += q;
      }
      store_field(blocks + kSums + 2 * run, static_cast<std::int16_t>(sum));
    }
  }
}

inline std::size_t first_bad_scale(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    if (!std::isfinite(load_field<float>(blocks + b * kBytes + kScale))) return b;
  }
  return n;
}

}  // namespace lockstep::quant::q8_k
