// Q4X, a format of this project: 256 values in 8 groups of 32, each value one of 16 levels of a
// codebook. A tensor has four codebooks, learned from its own weights; a group names the one that
// suits it, and a scale with a sign: value = scale_j * codebook[c_j][index]. A negative scale
// mirrors the codebook, which doubles the shapes to choose from for one bit. 4.28 bits per weight,
// after the idea of QuantX (arXiv 2505.07531): 64 levels in all, few enough for registers.
//
//   byte  0 ....... 7  8          9 ........ 24       121 ...... 136
//        [s0 ... s7  ][books    ][group 0     ] ... [group 7     ]
//
//   s_j: bits 0-5 the scale code, bit 6 its sign, bit 7 the low bit of c_j.
//   Bit j of `books` is the high bit of c_j.
//   Quants: byte i of a group's 16 holds values i (low nibble) and i + 16 (high), as in IQ4_NL.
//
// A block is nothing without the side data of its tensor, 72 bytes:
//
//   byte  0 ............. 63   64 .... 67   68       69 .. 71
//        [4 x 16 levels (i8)][base (f32) ][shift  ][zeros   ]
//
//   scale_j = base * f16(code_j << shift): the code is a small float whose split into exponent and
//   mantissa is the tensor's choice, from 6 bits of mantissa (shift 4: evenly spaced) to 1 (shift
//   9), and decoding it takes no table. Code 0 is a scale of 0. The levels of a codebook ascend
//   and are -63 .. 63: plus 64 they are unsigned, and the sum of two products with int8
//   activations fits int16.
#pragma once

#include <cmath>

#include "quant/formats/block.h"

namespace lockstep::quant::q4x {

inline constexpr std::size_t kValues = 256;
inline constexpr std::size_t kBytes = 137;
inline constexpr std::size_t kBooksHigh = 8;
inline constexpr std::size_t kQuants = 9;
inline constexpr std::size_t kGroup = 32;
inline constexpr std::size_t kGroups = kValues / kGroup;

inline constexpr std::size_t kBooks = 4;
inline constexpr std::size_t kLevels = 16;
inline constexpr int kMaxLevel = 63;
inline constexpr unsigned kCodes = 64;     // codes of a scale without its sign
inline constexpr unsigned kSignBit = 64;   // of a scale byte
inline constexpr unsigned kBadScale = 64;  // minus zero: the group held a value that is not finite

inline constexpr std::size_t kSideBytes = 72;
inline constexpr std::size_t kBase = 64;
inline constexpr std::size_t kShift = 68;
inline constexpr unsigned kMinShift = 4;
inline constexpr unsigned kMaxShift = 9;

struct Group {
  float scale;
  std::size_t book;
};

// Group j of a block.
inline Group group(const std::byte* side, const std::byte* block, std::size_t j) noexcept {
  const unsigned s = byte_at(block, j);
  const unsigned high = byte_at(block + kBooksHigh, 0) >> j & 1u;
  const unsigned half = ((s & (kCodes - 1)) << byte_at(side, kShift)) | (s & kSignBit)
                                                                            << 9;  // sign to bit 15
  return {load_field<float>(side + kBase) * f16_to_f32(static_cast<std::uint16_t>(half)),
          (s >> 7) | (high << 1)};
}

inline int level(const std::byte* side, std::size_t book, unsigned index) noexcept {
  return signed_byte_at(side, book * kLevels + index);
}

// What is wrong with side data that came from a file; null if nothing. Everything else here trusts
// it.
inline const char* side_problem(const std::byte* side) noexcept {
  for (std::size_t i = 0; i < kBooks * kLevels; ++i) {
    const int value = signed_byte_at(side, i);
    if (value < -kMaxLevel || value > kMaxLevel) return "has a level outside of -63 .. 63";
    if (i % kLevels != 0 && value < signed_byte_at(side, i - 1)) {
      return "has levels that do not ascend";
    }
  }
  const float base = load_field<float>(side + kBase);
  if (!std::isfinite(base) || base <= 0.0f) return "has a base that is no positive number";
  const unsigned shift = byte_at(side, kShift);
  if (shift < kMinShift || shift > kMaxShift) return "has a scale shift outside of 4 .. 9";
  for (std::size_t i = kShift + 1; i < kSideBytes; ++i) {
    if (byte_at(side, i) != 0) return "has reserved bytes that are not zero";
  }
  return nullptr;
}

inline void decode(const std::byte* side, const std::byte* blocks, float* values,
                   std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, blocks += kBytes) {
    for (std::size_t j = 0; j < kGroups; ++j, values += kGroup) {
      const Group of = group(side, blocks, j);
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(blocks + kQuants, j * kGroup / 2 + i);
        values[i] = of.scale * static_cast<float>(level(side, of.book, pair & 15u));
        values[i + kGroup / 2] = of.scale * static_cast<float>(level(side, of.book, pair >> 4));
      }
    }
  }
}

inline float vec_dot(const std::byte* side, const std::byte* row, const ActivationRow& activations,
                     std::size_t k) noexcept {
  float acc = 0;
  for (std::size_t b = 0; b < k / kValues; ++b, row += kBytes) {
    for (std::size_t j = 0; j < kGroups; ++j) {
      const Group of = group(side, row, j);
      const std::int8_t* y = activations.q + b * kValues + j * kGroup;
      std::int32_t isum = 0;
      for (std::size_t i = 0; i < kGroup / 2; ++i) {
        const unsigned pair = byte_at(row + kQuants, j * kGroup / 2 + i);
        isum += level(side, of.book, pair & 15u) * y[i] +
                level(side, of.book, pair >> 4) * y[i + kGroup / 2];
      }
      const float scale = of.scale * activations.scale[b * kGroups + j];
      acc = std::fma(scale, static_cast<float>(isum), acc);
    }
  }
  return acc;
}

inline std::size_t first_bad_scale(const std::byte* blocks, std::size_t n) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t j = 0; j < kGroups; ++j) {
      if ((byte_at(blocks + b * kBytes, j) & 127u) == kBadScale) return b;
    }
  }
  return n;
}

}  // namespace lockstep::quant::q4x
