// F32, F16, BF16: one value per "block", stored little-endian, no scale.
//
//   F32   [ 4 bytes IEEE binary32 ]
//   F16   [ 2 bytes IEEE binary16 ]   1 sign, 5 exponent, 10 mantissa bits
//   BF16  [ 2 bytes ]                 the upper half of a binary32
#pragma once

#include <cstring>

#include "quant/formats/block.h"

namespace lockstep::quant::dense {

inline void decode_f32(const std::byte* blocks, float* values, std::size_t n) noexcept {
  if (n != 0) std::memcpy(values, blocks, n * sizeof(float));
}

inline void encode_f32(const float* values, const float* /*importance*/, std::byte* blocks,
                       std::size_t n) noexcept {
  if (n != 0) std::memcpy(blocks, values, n * sizeof(float));
}

inline void decode_f16(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) values[i] = load_f16(blocks + 2 * i);
}

inline void encode_f16(const float* values, const float* /*importance*/, std::byte* blocks,
                       std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) store_field(blocks + 2 * i, f32_to_f16(values[i]));
}

inline void decode_bf16(const std::byte* blocks, float* values, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = bf16_to_f32(load_field<std::uint16_t>(blocks + 2 * i));
  }
}

inline void encode_bf16(const float* values, const float* /*importance*/, std::byte* blocks,
                        std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) store_field(blocks + 2 * i, f32_to_bf16(values[i]));
}

}  // namespace lockstep::quant::dense
