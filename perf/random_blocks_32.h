// Random blocks of the formats with 32 values in a block (64 for NVFP4), for random_blocks.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "perf/random_bits.h"
#include "quant/formats/e2m1.h"
#include "quant/formats/iq4_nl.h"

namespace lockstep::perf::random_detail {

// d (f16), 16 bytes of two nibbles; value = d * (q - 8).
inline void fill_q4_0(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(8, 2.6, 1, 15);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 18) {
    put_half(block, sigma / kTable.rms * spread(bits));
    put_nibbles(bits, kTable, block + 2, 32);
  }
}

// d (f16), 32 signed bytes; value = d * q.
inline void fill_q8_0(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(0, 43, -127, 127);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 34) {
    put_half(block, sigma / kTable.rms * spread(bits));
    for_each_byte(bits, 32, [&](std::size_t i, std::size_t random) {
      block[2 + i] = static_cast<std::byte>(kTable.quant[random]);
    });
  }
}

// d, m (f16), 16 bytes of two nibbles; value = d * q + m.
inline void fill_q4_1(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(7.5, 2.6, 0, 15);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 20) {
    const double d = sigma / kTable.rms * spread(bits);
    put_half(block, d);
    put_half(block + 2, -7.5 * d);
    put_nibbles(bits, kTable, block + 4, 32);
  }
}

// 4 bytes of fifth bits, 16 of two nibbles.
inline void put_fives(RandomBits& bits, const QuantTable& table, std::byte* at) {
  std::memset(at, 0, 20);
  for_each_byte(bits, 32, [&](std::size_t i, std::size_t random) {
    const unsigned quant = table.quant[random];
    at[i / 8] |= static_cast<std::byte>(quant >> 4 << (i % 8));
    at[4 + i % 16] |= static_cast<std::byte>((quant & 15) << (i / 16 * 4));
  });
}

// d (f16), fifth bits and nibbles; value = d * (q - 16).
inline void fill_q5_0(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(16, 5.2, 1, 31);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 22) {
    put_half(block, sigma / kTable.rms * spread(bits));
    put_fives(bits, kTable, block + 2);
  }
}

// d, m (f16), fifth bits and nibbles; value = d * q + m.
inline void fill_q5_1(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(15.5, 5.2, 0, 31);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 24) {
    const double d = sigma / kTable.rms * spread(bits);
    put_half(block, d);
    put_half(block + 2, -15.5 * d);
    put_fives(bits, kTable, block + 4);
  }
}

// d (f16), 16 bytes of two indices; value = d * level.
inline void fill_iq4_nl(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(quant::iq4_nl::kLevels, 42);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 18) {
    put_half(block, sign(bits) * sigma / kTable.rms * spread(bits));
    put_nibbles(bits, kTable, block + 2, 32);
  }
}

// Doubled values of 4-bit floats, as halves of scales multiply them.
inline const QuantTable& float_table() {
  static const QuantTable kTable(quant::e2m1::kDoubled, 4.5);
  return kTable;
}

// e (E8M0), 16 bytes of two values. Scales are powers of two, so the right one lies between two of
// them: drawn such that the mean square is right.
inline void fill_mxfp4(RandomBits& bits, double sigma, std::span<std::byte> into) {
  const double half_scale = sigma / float_table().rms;
  const double lower = std::floor(std::log2(half_scale));
  const double ratio = half_scale / std::exp2(lower);
  const double share_of_upper = (ratio * ratio - 1) / 3;
  // The whole scale is one power more.
  const int code = std::clamp(static_cast<int>(lower) + 1 + 127, 0, 253);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 17) {
    block[0] = static_cast<std::byte>(code + (bits.uniform() < share_of_upper ? 1 : 0));
    put_nibbles(bits, float_table(), block + 1, 32);
  }
}

// The nearest unsigned E4M3 float, at most 448.
inline unsigned ue4m3_code(double value) {
  const int exponent = std::max(static_cast<int>(std::floor(std::log2(value))), -6);
  const double eighths = std::nearbyint(std::ldexp(value, 3 - exponent));
  // 16 eighths carry into the exponent by themselves, and subnormals have less than 8.
  return static_cast<unsigned>(std::clamp((exponent + 6) * 8 + static_cast<int>(eighths), 0, 126));
}

// 4 scales (E4M3) of groups of 16, 32 bytes of two values.
inline void fill_nvfp4(RandomBits& bits, double sigma, std::span<std::byte> into) {
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 36) {
    for (std::size_t j = 0; j < 4; ++j) {
      block[j] = static_cast<std::byte>(ue4m3_code(2 * sigma / float_table().rms * spread(bits)));
    }
    put_nibbles(bits, float_table(), block + 4, 64);
  }
}

}  // namespace lockstep::perf::random_detail
