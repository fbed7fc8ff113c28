// IQ3_XXS: 64 points of a codebook of 256 with signs, and a 4-bit scale for every 8 points; value =
// d * (2 * s_j + 1) / 4 * (+-level). Points are 4 values of eight levels between 4 and 62.
//
//   byte  0   1   2 ............ 65  66 .............. 97
//        [d (f16)][64 indices      ][8 words of 32 bits  ]
//
//   Words, one per group of 32 values, little-endian: bits 7i to 7i + 6 the signs of points 2i and
//   2i + 1 together, of which the eighth follows (grid.h), and bits 28 to 31 s_j.
#pragma once

#include "quant/formats/iq3_grids.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq3_xxs {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 98;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kPoints = 2;
inline constexpr std::size_t kSignsAndScales = 66;

struct Block {
  static constexpr std::size_t kBytes = iq3_xxs::kBytes;
  static constexpr std::size_t kGroup = 32;
  static constexpr float kUnit = 0.25f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static std::uint32_t signs_and_scale(const std::byte* block, std::size_t j) noexcept {
    return load_field<std::uint32_t>(block + kSignsAndScales + 4 * j);
  }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * (signs_and_scale(block, j) >> 28) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    const std::byte* index = block + kPoints;
    for (std::size_t j = 0; j < kValues / kGroup; ++j) {
      std::uint32_t signs = signs_and_scale(block, j);
      for (std::size_t i = 0; i < 4; ++i, signs >>= 7, index += 2, q += 8) {
        const std::uint64_t pair =
            iq3::kGridXxs[byte_at(index, 0)] | (iq3::kGridXxs[byte_at(index, 1)] << 32);
        store_point(q, with_signs(pair, kEvenSignMasks[signs & 127u]));
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq3_xxs
