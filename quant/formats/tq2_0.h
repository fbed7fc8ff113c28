// TQ2_0: 256 values of 2 bits times one scale; value = d * (q - 1). The encoder writes -1, 0 and 1;
// q = 3 is not forbidden and means 2.
//
//   byte  0 ............ 31  32 ........... 63  64  65
//        [values 0 to 127  ][128 to 255       ][d (f16)]
//
//   Value i of a half is bits 2c and 2c + 1 of byte i % 32, where c = i / 32.
#pragma once

#include "quant/formats/unpacked.h"

namespace lockstep::quant::tq2_0 {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 66;
inline constexpr std::size_t kScale = 64;

struct Block {
  static constexpr std::size_t kBytes = tq2_0::kBytes;
  static constexpr std::size_t kGroup = kValues;
  static constexpr float kUnit = 1.0f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static int group_scale(const std::byte*, std::size_t) noexcept { return 1; }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t c = 0; c < 4; ++c) {
        for (std::size_t i = 0; i < 32; ++i) {
          const unsigned four = byte_at(block, 32 * half + i);
          *q++ = static_cast<std::int8_t>(static_cast<int>((four >> (2 * c)) & 3u) - 1);
        }
      }
    }
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::tq2_0
