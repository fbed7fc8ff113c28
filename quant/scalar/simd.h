// Sixteen lanes held in an array: the definition that every vector unit must match bit for bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/half.h"

namespace lockstep::quant {
namespace {

struct ScalarSimd {
  static constexpr int kWidth = 16;
  static constexpr int kRegisters = 8;
  struct Floats {
    float lane[kWidth];
  };
  struct Ints {
    std::int32_t lane[kWidth];
  };

  template <class F>
  static Floats floats(F f) noexcept {
    Floats z;
    for (int i = 0; i < kWidth; ++i) z.lane[i] = f(i);
    return z;
  }
  template <class F>
  static Ints ints(F f) noexcept {
    Ints z;
    for (int i = 0; i < kWidth; ++i) z.lane[i] = f(i);
    return z;
  }

  static Floats set(float x) noexcept {
    return floats([&](int) { return x; });
  }
  static Floats set_f16(std::uint16_t x) noexcept { return set(f16_to_f32(x)); }
  static Floats load(const float* x) noexcept {
    return floats([&](int i) { return x[i]; });
  }
  static Floats load_f16(const std::uint16_t* x) noexcept {
    return floats([&](int i) { return f16_to_f32(x[i]); });
  }
  static Floats load_bf16(const std::uint16_t* x) noexcept {
    return floats([&](int i) { return bf16_to_f32(x[i]); });
  }
  static void store(const Floats& x, float* y) noexcept {
    for (int i = 0; i < kWidth; ++i) y[i] = x.lane[i];
  }
  static void store_f16(const Floats& x, std::uint16_t* y) noexcept {
    for (int i = 0; i < kWidth; ++i) y[i] = f32_to_f16(x.lane[i]);
  }
  static Ints load_i8(const std::int8_t* x) noexcept {
    return ints([&](int i) { return x[i]; });
  }
  static void store_i8(const Ints& x, std::int8_t* y) noexcept {
    for (int i = 0; i < kWidth; ++i) y[i] = static_cast<std::int8_t>(x.lane[i]);
  }

  static void transpose16(const float* rows, std::size_t stride, float* columns) noexcept {
    for (std::size_t j = 0; j < kWidth; ++j) {
      for (std::size_t i = 0; i < kWidth; ++i) columns[i * kWidth + j] = rows[j * stride + i];
    }
  }

  static Floats add(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Floats sub(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static Floats mul(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static Floats div(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) noexcept {
    return floats([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
  }
  static Floats min(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Floats max(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  // a < b ? x : y; y if a or b is NaN.
  static Floats select_less(const Floats& a, const Floats& b, const Floats& x,
                            const Floats& y) noexcept {
    return floats([&](int i) { return a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i]; });
  }
  // -1 where a < b, else 0. Not inlined: g++ 12 at -O3 turns a chain of these and lookup8 into
  // vector code with wrong results.
  [[gnu::noinline]] static Ints less(const Floats& a, const Floats& b) noexcept {
    return ints([&](int i) { return a.lane[i] < b.lane[i] ? -1 : 0; });
  }
  // Entries 0 to 7 of a table.
  static Floats lookup8(const float* table, const Ints& index) noexcept {
    return floats([&](int i) { return table[index.lane[i]]; });
  }
  static Floats or_nan(const Floats& y, const Floats& x) noexcept {
    return floats([&](int i) { return x.lane[i] == x.lane[i] ? y.lane[i] : x.lane[i]; });
  }

  // Adding 1.5 * 2^23 leaves the nearest integer, ties to even, in the low bits of the mantissa.
  static Ints round(const Floats& x) noexcept {
    constexpr float kRounder = 12582912.0f;
    return ints([&](int i) {
      return std::bit_cast<std::int32_t>(x.lane[i] + kRounder) -
             std::bit_cast<std::int32_t>(kRounder);
    });
  }
  static Floats to_float(const Ints& n) noexcept {
    return floats([&](int i) { return static_cast<float>(n.lane[i]); });
  }
  // For -126 <= n <= 127.
  static Floats power_of_two(const Ints& n) noexcept {
    return floats([&](int i) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(n.lane[i] + 127) << 23);
    });
  }
  static Ints halve(const Ints& n) noexcept {
    return ints([&](int i) { return n.lane[i] >> 1; });
  }
  static Ints add_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Ints sub_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static Ints abs_bits(const Floats& x) noexcept {
    return ints([&](int i) { return std::bit_cast<std::int32_t>(x.lane[i]) & 0x7fffffff; });
  }
  static Ints max_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }

  // Sums and maxima fold the upper half of the lanes onto the lower half, four times.
  template <class Lanes, class F>
  static auto fold(Lanes x, F f) noexcept {
    for (int width = kWidth / 2; width != 0; width /= 2) {
      for (int i = 0; i < width; ++i) x.lane[i] = f(x.lane[i], x.lane[i + width]);
    }
    return x.lane[0];
  }
  static float reduce_add(const Floats& x) noexcept {
    return fold(x, [](float a, float b) { return a + b; });
  }
  static void reduce_add4(const Floats (&x)[4], float* sums) noexcept {
    for (int i = 0; i < 4; ++i) sums[i] = reduce_add(x[i]);
  }
  static float reduce_max(const Floats& x) noexcept {
    return fold(x, [](float a, float b) { return a > b ? a : b; });
  }
  static std::int32_t reduce_add_ints(const Ints& x) noexcept {
    return fold(x, [](std::int32_t a, std::int32_t b) { return a + b; });
  }
  static std::int32_t reduce_max_ints(const Ints& x) noexcept {
    return fold(x, [](std::int32_t a, std::int32_t b) { return a > b ? a : b; });
  }
};

}  // namespace
}  // namespace lockstep::quant
