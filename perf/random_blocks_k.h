// Random blocks of the formats with 256 values in a block, for random_blocks.h.
#pragma once

#include "perf/random_bits.h"
#include "quant/formats/iq4_xs.h"

namespace lockstep::perf::random_detail {

// Root mean square of integers that are equally likely from `low` to `high`.
inline double rms_of_range(int low, int high) {
  const double middle = (low + high) / 2.0;
  const double count = high - low + 1;
  return std::sqrt(middle * middle + (count * count - 1) / 12);
}

inline int draw(RandomBits& bits, int low, int high) {
  return low + static_cast<int>(bits.next() % static_cast<unsigned>(high - low + 1));
}

// In the next three formats value = d * s * q - dmin * m. Quants are symmetric around their middle,
// so dmin = middle * d and m = s would give mean zero exactly; m is one off now and then because a
// kernel that takes s for m must not go unseen.
inline int draw_min(RandomBits& bits, int scale) { return draw(bits, scale - 1, scale + 1); }

// 16 bytes of a 4-bit scale and a 4-bit minimum, 64 bytes of four 2-bit quants, d, dmin (f16).
inline void fill_q2_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(1.5, 1, 0, 3);
  static const double kScaleRms = rms_of_range(8, 14);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 84) {
    for (std::size_t j = 0; j < 16; ++j) {
      const int scale = draw(bits, 8, 14);
      block[j] = static_cast<std::byte>(scale | draw_min(bits, scale) << 4);
    }
    std::memset(block + 16, 0, 64);
    for_each_byte(bits, 256, [&](std::size_t i, std::size_t random) {
      block[16 + i / 4] |= static_cast<std::byte>(kTable.quant[random] << (i % 4 * 2));
    });
    const double d = sigma / kTable.rms / kScaleRms * spread(bits);
    put_half(block + 80, d);
    put_half(block + 82, 1.5 * d);
  }
}

// 32 bytes of third bits, 64 of low bit pairs, 12 with sixteen 6-bit scales, d (f16); value = d *
// (s
// - 32) * (q - 4).
inline void fill_q3_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(4, 1.5, 1, 7);
  static const double kScaleRms = rms_of_range(16, 31);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 110) {
    std::memset(block, 0, 108);
    for_each_byte(bits, 256, [&](std::size_t i, std::size_t random) {
      const unsigned quant = kTable.quant[random];
      block[i % 32] |= static_cast<std::byte>(quant >> 2 << (i / 32));
      block[32 + i / 128 * 32 + i % 32] |= static_cast<std::byte>((quant & 3) << (i / 32 % 4 * 2));
    });
    for (std::size_t j = 0; j < 16; ++j) {
      const int magnitude = draw(bits, 16, 31);
      const int scale = 32 + (bits.next() >> 63 ? -magnitude : magnitude);
      block[96 + j % 8] |= static_cast<std::byte>((scale & 15) << (j / 8 * 4));
      block[104 + j % 4] |= static_cast<std::byte>(scale >> 4 << (j / 4 * 2));
    }
    put_half(block + 108, sigma / kTable.rms / kScaleRms * spread(bits));
  }
}

// d, dmin (f16) and 12 bytes with eight 6-bit scales and minima: how Q4_K and Q5_K begin. `unit`:
// the standard deviation for scales of 1.
inline void put_six_bit_scales(RandomBits& bits, double unit, double middle, std::byte* block) {
  static const double kScaleRms = rms_of_range(43, 57);
  const double d = unit / kScaleRms * spread(bits);
  put_half(block, d);
  put_half(block + 2, middle * d);
  int scale[8], minimum[8];
  for (std::size_t j = 0; j < 8; ++j) {
    scale[j] = draw(bits, 43, 57);
    minimum[j] = draw_min(bits, scale[j]);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    block[4 + j] = static_cast<std::byte>(scale[j] | scale[j + 4] >> 4 << 6);
    block[8 + j] = static_cast<std::byte>(minimum[j] | minimum[j + 4] >> 4 << 6);
    block[12 + j] = static_cast<std::byte>((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
  }
}

// Scales, 128 bytes of two nibbles.
inline void fill_q4_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(7.5, 2.6, 0, 15);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 144) {
    put_six_bit_scales(bits, sigma / kTable.rms, 7.5, block);
    put_nibbles(bits, kTable, block + 16, 256);
  }
}

// Scales, 32 bytes of fifth bits, 128 bytes of two nibbles.
inline void fill_q5_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(15.5, 5.2, 0, 31);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 176) {
    put_six_bit_scales(bits, sigma / kTable.rms, 15.5, block);
    std::memset(block + 16, 0, 160);
    for_each_byte(bits, 256, [&](std::size_t i, std::size_t random) {
      const unsigned quant = kTable.quant[random];
      block[16 + i % 32] |= static_cast<std::byte>(quant >> 4 << (i / 32));
      block[48 + i / 64 * 32 + i % 32] |= static_cast<std::byte>((quant & 15) << (i / 32 % 2 * 4));
    });
  }
}

// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d (f16); value = d * s * (q -
// 32). All places of a quant are alike, so they are filled in the order that is simplest.
inline void fill_q6_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(32, 10, 1, 63);
  static const double kScaleRms = rms_of_range(65, 127);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 210) {
    std::memset(block, 0, 192);
    for_each_byte(bits, 256, [&](std::size_t i, std::size_t random) {
      // Value i of the block: half i / 128, quarter c, place l in the quarter.
      const std::size_t half = i / 128, c = i % 128 / 32, l = i % 32;
      const unsigned quant = kTable.quant[random];
      block[64 * half + 32 * (c % 2) + l] |= static_cast<std::byte>((quant & 15) << (c / 2 * 4));
      block[128 + 32 * half + l] |= static_cast<std::byte>(quant >> 4 << (2 * c));
    });
    for (std::size_t j = 0; j < 16; ++j) {
      const std::uint64_t random = bits.next();
      const int scale = 65 + static_cast<int>(random % 63);  // 65 .. 127
      block[192 + j] = static_cast<std::byte>(random >> 63 ? -scale : scale);
    }
    put_half(block + 208, sigma / kTable.rms / kScaleRms * spread(bits));
  }
}

// d (f16), 2 bytes of high and 4 of low bits of eight 6-bit scales, 128 bytes of two indices; value
// = d * (s - 32) * level.
inline void fill_iq4_xs(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(quant::iq4_xs::kLevels, 42);
  static const double kScaleRms = rms_of_range(16, 31);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 136) {
    put_half(block, sigma / kTable.rms / kScaleRms * spread(bits));
    std::memset(block + 2, 0, 6);
    for (std::size_t j = 0; j < 8; ++j) {
      const int magnitude = draw(bits, 16, 31);
      const int scale = 32 + (bits.next() >> 63 ? -magnitude : magnitude);
      block[2 + j / 4] |= static_cast<std::byte>(scale >> 4 << (j % 4 * 2));
      block[4 + j / 2] |= static_cast<std::byte>((scale & 15) << (j % 2 * 4));
    }
    put_nibbles(bits, kTable, block + 8, 256);
  }
}

}  // namespace lockstep::perf::random_detail
