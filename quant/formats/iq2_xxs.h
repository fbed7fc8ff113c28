// IQ2_XXS: 32 points of a codebook of 256 with signs, and a 4-bit scale for every 4 points; value =
// d * (2 * s_j + 1) / 8 * (+-level). Points are 8 values of the levels 8, 25 and 43.
//
//   byte  0   1   2 ......... 9     ... 58 ........ 65
//        [d (f16)][group 0     ]    ... [group 7     ]
//
//   group: byte 0 to 3 the indices of its points, then a little-endian word: bits 7i to 7i + 6 the
//   signs of point i, of which the eighth follows (grid.h), and bits 28 to 31 s_j.
#pragma once

#include "quant/formats/iq2_grids.h"
#include "quant/formats/unpacked.h"

namespace lockstep::quant::iq2_xxs {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 66;
inline constexpr std::size_t kScale = 0;
inline constexpr std::size_t kGroups = 2;

struct Block {
  static constexpr std::size_t kBytes = iq2_xxs::kBytes;
  static constexpr std::size_t kGroup = 32;
  static constexpr float kUnit = 0.125f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static std::uint32_t signs_and_scale(const std::byte* block, std::size_t j) noexcept {
    return load_field<std::uint32_t>(block + kGroups + 8 * j + 4);
  }
  static int group_scale(const std::byte* block, std::size_t j) noexcept {
    return static_cast<int>(2 * (signs_and_scale(block, j) >> 28) + 1);
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    for (std::size_t j = 0; j < kValues / kGroup; ++j) {
      std::uint32_t signs = signs_and_scale(block, j);
      for (std::size_t i = 0; i < 4; ++i, signs >>= 7, q += 8) {
        const std::uint64_t point = iq2::kGridXxs[byte_at(block + kGroups, 8 * j + i)];
        store_point(q, with_signs(point, kEvenSignMasks[signs & 127u]));
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::iq2_xxs
