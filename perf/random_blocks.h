// Random weights of any format without an encoder: blocks are drawn directly, so a model of a
// billion weights takes seconds and formats that nobody can encode yet can be benchmarked.
//
// Quants come from a table of 256 normal quantiles, eight of them per random number; scales vary
// from block to block so that a kernel which mixes them up is seen. The decoded values have mean
// zero (nearly) and the standard deviation that was asked for.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "quant/format.h"
#include "quant/half.h"

namespace lockstep::perf {

// SplitMix64: small, fast, the same everywhere.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // Uniform in [0, 1).
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// Middle of the i-th of `count` equally likely parts of the standard normal distribution.
inline double normal_quantile(std::size_t i, std::size_t count) {
  if (i < count - 1 - i) return -normal_quantile(count - 1 - i, count);  // exactly symmetric
  const double above = (static_cast<double>(count - i) - 0.5) / static_cast<double>(count);
  double low = 0, high = 10;  // the upper half: bisect the tail probability
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > above ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Small integers with a normal distribution, looked up by one random byte: `middle` + `steps`
// quants per standard deviation, clamped to [low, high].
struct QuantTable {
  std::array<std::uint8_t, 256> quant;  // as the bits of the stored field
  double rms = 0;                       // of quant - middle

  QuantTable(double middle, double steps, int low, int high) : quant{} {
    for (std::size_t i = 0; i < 256; ++i) {
      const double exact = middle + steps * normal_quantile(i, 256);
      const double value = std::fmin(std::fmax(std::nearbyint(exact), low), high);
      quant[i] = static_cast<std::uint8_t>(static_cast<int>(value));
      rms += (value - middle) * (value - middle) / 256;
    }
    rms = std::sqrt(rms);
  }
};

namespace random_detail {

inline void put_half(std::byte* at, double value) {
  const std::uint16_t half = quant::f32_to_f16(static_cast<float>(value));
  std::memcpy(at, &half, sizeof(half));
}

// A factor around 1 whose mean square is 1.
inline double spread(RandomBits& bits) {
  static const double kRms = std::sqrt(1 + 0.25 / 12);
  return (0.75 + 0.5 * bits.uniform()) / kRms;
}

// f(place, random byte) for every place in [0, count).
template <typename F>
void for_each_byte(RandomBits& bits, std::size_t count, F f) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i, word >>= 8) {
    if (i % 8 == 0) word = bits.next();
    f(i, static_cast<std::size_t>(word & 255));
  }
}

// Values of 1 element per block: a table of 65536 quantiles in the stored form, drawn by 16 bits.
template <typename Stored, typename Convert>
void fill_dense(RandomBits& bits, double sigma, std::span<std::byte> into, Convert convert) {
  static const std::vector<float> kNormal = [] {
    std::vector<float> normal(65536);
    for (std::size_t i = 0; i < normal.size(); ++i) {
      normal[i] = static_cast<float>(normal_quantile(i, normal.size()));
    }
    return normal;
  }();
  std::uint64_t word = 0;
  const std::size_t count = into.size() / sizeof(Stored);
  for (std::size_t i = 0; i < count; ++i, word >>= 16) {
    if (i % 4 == 0) word = bits.next();
    const Stored value = convert(kNormal[word & 65535] * static_cast<float>(sigma));
    std::memcpy(into.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

inline void fill_f32(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<float>(bits, sigma, into, [](float x) { return x; });
}

inline void fill_f16(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<std::uint16_t>(bits, sigma, into, quant::f32_to_f16);
}

inline void fill_bf16(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<std::uint16_t>(bits, sigma, into, quant::f32_to_bf16);
}

// d (f16), 16 bytes of two nibbles; value = d * (q - 8).
inline void fill_q4_0(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(8, 2.6, 1, 15);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 18) {
    put_half(block, sigma / kTable.rms * spread(bits));
    std::memset(block + 2, 0, 16);
    for_each_byte(bits, 32, [&](std::size_t i, std::size_t random) {
      block[2 + i / 2] |= static_cast<std::byte>(kTable.quant[random] << (i % 2 * 4));
    });
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

// d, dmin (f16), 12 bytes with eight 6-bit scales s and minima m, 128 bytes of two nibbles; value =
// d * s * q - dmin * m. Quants are symmetric around 7.5, so dmin = 7.5 d and m = s would give mean
// zero exactly; m is one off now and then because a kernel that takes s for m must not go unseen.
inline void fill_q4_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(7.5, 2.6, 0, 15);
  static const double kScaleRms = std::sqrt(50.0 * 50.0 + (15.0 * 15.0 - 1) / 12);
  for (std::byte* block = into.data(); block < into.data() + into.size(); block += 144) {
    const double d = sigma / kTable.rms / kScaleRms * spread(bits);
    put_half(block, d);
    put_half(block + 2, 7.5 * d);
    unsigned scale[8], minimum[8];
    for (std::size_t j = 0; j < 8; ++j) {
      scale[j] = 43 + static_cast<unsigned>(bits.next() % 15);  // 43 .. 57
      minimum[j] = scale[j] - 1 + static_cast<unsigned>(bits.next() % 3);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      block[4 + j] = static_cast<std::byte>(scale[j] | scale[j + 4] >> 4 << 6);
      block[8 + j] = static_cast<std::byte>(minimum[j] | minimum[j + 4] >> 4 << 6);
      block[12 + j] = static_cast<std::byte>((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
    }
    std::memset(block + 16, 0, 128);
    for_each_byte(bits, 256, [&](std::size_t i, std::size_t random) {
      block[16 + i / 2] |= static_cast<std::byte>(kTable.quant[random] << (i % 2 * 4));
    });
  }
}

// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d (f16); value = d * s * (q -
// 32). All places of a quant are alike, so they are filled in the order that is simplest.
inline void fill_q6_k(RandomBits& bits, double sigma, std::span<std::byte> into) {
  static const QuantTable kTable(32, 10, 1, 63);
  static const double kScaleRms = std::sqrt(96.0 * 96.0 + (63.0 * 63.0 - 1) / 12);
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

}  // namespace random_detail

struct RandomFormat {
  quant::Format format;
  std::uint32_t file_type;  // general.file_type of a model in this format
  // Fills whole blocks.
  void (*fill)(RandomBits& bits, double sigma, std::span<std::byte> into);
};

inline constexpr RandomFormat kRandomFormats[] = {
    {quant::Format::f32, 0, random_detail::fill_f32},
    {quant::Format::f16, 1, random_detail::fill_f16},
    {quant::Format::q4_0, 2, random_detail::fill_q4_0},
    {quant::Format::q8_0, 7, random_detail::fill_q8_0},
    {quant::Format::q4_k, 14, random_detail::fill_q4_k},
    {quant::Format::q6_k, 18, random_detail::fill_q6_k},
    {quant::Format::bf16, 32, random_detail::fill_bf16},
};

// Throws std::invalid_argument with the list of choices.
inline const RandomFormat& random_format(quant::Format format) {
  std::string names;
  for (const RandomFormat& known : kRandomFormats) {
    if (known.format == format) return known;
    names.append(" ").append(quant::traits(known.format).name);
  }
  throw std::invalid_argument("no random weights in " + std::string(quant::traits(format).name) +
                              "; there are:" + names);
}

}  // namespace lockstep::perf
