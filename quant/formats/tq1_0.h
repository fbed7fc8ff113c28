// TQ1_0: 256 values of -1, 0 and 1 times one scale, five to a byte; value = d * (digit - 1).
//
//   byte  0 ............. 31  32 ............ 47  48 ........ 51  52  53
//        [values 0 to 159   ][160 to 239        ][240 to 255     ][d (f16)]
//
//   A byte is a fraction in base 3, ceil(256 * 0.abcde): times 3, the carry out of 8 bits is digit
//   a, and what stays holds the rest. Digit n of byte i is value
//     32n + i          in the first run
//     160 + 16n + i    in the second
//     240 + 4n + i     in the third, which has four digits
#pragma once

#include "quant/formats/unpacked.h"

namespace lockstep::quant::tq1_0 {

inline constexpr std::size_t kValues = kUnpackedValues;
inline constexpr std::size_t kBytes = 54;
inline constexpr std::size_t kScale = 52;

struct Block {
  static constexpr std::size_t kBytes = tq1_0::kBytes;
  static constexpr std::size_t kGroup = kValues;
  static constexpr float kUnit = 1.0f;

  static float scale(const std::byte* block) noexcept { return load_f16(block + kScale); }
  static int group_scale(const std::byte*, std::size_t) noexcept { return 1; }

  template <std::size_t kRun, std::size_t kDigits>
  static void unpack_run(const std::byte* run, std::int8_t* q) noexcept {
    std::uint8_t rest[kRun];
    std::memcpy(rest, run, kRun);
    for (std::size_t n = 0; n < kDigits; ++n, q += kRun) {
      for (std::size_t i = 0; i < kRun; ++i) {
        const unsigned tripled = rest[i] * 3u;
        q[i] = static_cast<std::int8_t>(static_cast<int>(tripled >> 8) - 1);
        rest[i] = static_cast<std::uint8_t>(tripled);
      }
    }
  }
  static void unpack(const std::byte* block, std::int8_t* q) noexcept {
    unpack_run<32, 5>(block, q);
    unpack_run<16, 5>(block + 32, q + 160);
    unpack_run<4, 4>(block + 48, q + 240);
  }
};

inline constexpr auto decode = decode_unpacked<Block>;
inline constexpr auto vec_dot = vec_dot_unpacked<Block>;
inline constexpr auto first_bad_scale = first_bad_f16<kBytes, kScale>;

}  // namespace lockstep::quant::tq1_0
