// Random numbers for weights: a generator that is the same everywhere, and tables that turn one
// random byte into a quant of a normal distribution. The formats themselves are in
// random_blocks*.h.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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

  // Indices into `levels` instead of integers: the level nearest to `steps` times the quantile. The
  // mean is zero if the levels are symmetric, the root mean square is that of the levels.
  QuantTable(std::span<const std::int8_t> levels, double steps) : quant{} {
    for (std::size_t i = 0; i < 256; ++i) {
      const double exact = steps * normal_quantile(i, 256);
      std::size_t nearest = 0;
      for (std::size_t level = 1; level < levels.size(); ++level) {
        if (std::fabs(levels[level] - exact) < std::fabs(levels[nearest] - exact)) nearest = level;
      }
      quant[i] = static_cast<std::uint8_t>(nearest);
      rms += static_cast<double>(levels[nearest]) * levels[nearest] / 256;
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

// A random sign, so that formats whose quants are not quite symmetric have mean zero all the same.
inline double sign(RandomBits& bits) { return bits.next() >> 63 ? -1.0 : 1.0; }

// `count` quants of 4 bits. All places of a quant are alike, so they are filled in the order that
// is simplest.
inline void put_nibbles(RandomBits& bits, const QuantTable& table, std::byte* at,
                        std::size_t count) {
  std::memset(at, 0, count / 2);
  for_each_byte(bits, count, [&](std::size_t i, std::size_t random) {
    at[i / 2] |= static_cast<std::byte>(table.quant[random] << (i % 2 * 4));
  });
}

}  // namespace random_detail
}  // namespace lockstep::perf
