// Decoding and the dot product for blocks of 256 values that are small integers times a group scale
// times the block's scale: value = d * unit * sc_j * q. Such a format only says how to unpack its
// integers; a Block names
//     kBytes, kGroup            bytes per block; values that share a group scale
//     kUnit                     a power of two that makes scales and quants whole numbers
//     scale(block)              d
//     group_scale(block, j)     sc_j
//     unpack(block, q)          the 256 q as int8
//
// A whole block is unpacked before it is multiplied: codebook look-ups are awkward to vectorize,
// the products of two rows of int8 are not, and compilers do it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/formats/block.h"

namespace lockstep::quant {

inline constexpr std::size_t kUnpackedValues = 256;

// Eight int8 from the bytes of a word, value i in byte i.
inline void store_point(std::int8_t* q, std::uint64_t point) noexcept {
  std::memcpy(q, &point, sizeof point);
}

// Nibble i of a run of bytes, the low one of a byte first.
inline unsigned nibble_at(const std::byte* from, std::size_t i) noexcept {
  return (byte_at(from, i / 2) >> (4 * (i % 2))) & 15u;
}

// Every product below is exact in f32: d has 11 bits, unit * sc_j at most 5 and q at most 6. So it
// does not matter in which order a decoder multiplies them.
template <class Block>
void decode_unpacked(const std::byte* blocks, float* values, std::size_t n) noexcept {
  std::int8_t q[kUnpackedValues];
  for (; n >= kUnpackedValues; n -= kUnpackedValues, blocks += Block::kBytes) {
    Block::unpack(blocks, q);
    const float d = Block::scale(blocks) * Block::kUnit;
    for (std::size_t j = 0; j < kUnpackedValues / Block::kGroup; ++j) {
      const float scale = d * static_cast<float>(Block::group_scale(blocks, j));
      for (std::size_t i = 0; i < Block::kGroup; ++i) {
        *values++ = scale * static_cast<float>(q[j * Block::kGroup + i]);
      }
    }
  }
}

// acc = fma((d * unit) * da, sum over groups of sc_j * sum of q * y, acc), block after block. The
// integer sum is below 2^26 in magnitude for every format: |q| <= 62, sc_j <= 31, |y| <= 127.
template <class Block>
float vec_dot_unpacked(const std::byte* row, const ActivationRow& activations,
                       std::size_t k) noexcept {
  std::int8_t q[kUnpackedValues];
  float acc = 0;
  for (std::size_t b = 0; b < k / kUnpackedValues; ++b, row += Block::kBytes) {
    Block::unpack(row, q);
    const std::int8_t* y = activations.q + b * kUnpackedValues;
    std::int32_t isum = 0;
    for (std::size_t j = 0; j < kUnpackedValues / Block::kGroup; ++j) {
      std::int32_t products = 0;
      for (std::size_t i = j * Block::kGroup; i < (j + 1) * Block::kGroup; ++i) {
        products += q[i] * y[i];
      }
      isum += Block::group_scale(row, j) * products;
    }
    const float scale = Block::scale(row) * Block::kUnit * activations.scale[b];
    acc = std::fma(scale, static_cast<float>(isum), acc);
  }
  return acc;
}

}  // namespace lockstep::quant
