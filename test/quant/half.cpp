// 16-bit floats: every f16 by the formula of its fields, f32 to f16 by searching the nearest f16,
// and the vector conversions (hardware, where there is some) against the portable ones.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "quant/half.h"
#include "quant/kernels.h"
#include "support/catch.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using lockstep::test::same_float;
using quant::Isa;

namespace {

// The value of a finite f16 from its fields.
double value_of(unsigned half) {
  const int exponent = static_cast<int>(half >> 10 & 31u);
  const double mantissa = half & 1023u;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000u) != 0 ? -magnitude : magnitude;
}

// The nearest f16, ties to even, by bisection over the positive finite ones; 65504 + 16 and above
// is infinity.
std::uint16_t nearest_half(float x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000u : 0u;
  const double magnitude = std::fabs(double{x});
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00u);
  unsigned low = 0;
  unsigned high = 0x7bffu;
  while (low < high) {
    const unsigned middle = (low + high + 1) / 2;
    if (value_of(middle) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const double below = magnitude - value_of(low);
  const double above = low == 0x7bffu ? 65536.0 - magnitude : value_of(low + 1) - magnitude;
  if (above < below || (above == below && (low & 1u) != 0)) ++low;
  return static_cast<std::uint16_t>(sign | low);
}

std::vector<float> sampled_floats() {
  std::vector<float> x;
  std::mt19937 random(71);
  for (int i = 0; i < 200000; ++i)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  // Around every f16 and every midpoint: the neighbours on both sides.
  for (unsigned half = 0; half < 0x7c00u; ++half) {
    const auto at = static_cast<float>(value_of(half));
    const float upper = half == 0x7bffu ? 65536.0f : static_cast<float>(value_of(half + 1));
    for (const float v : {at, (at + upper) / 2}) {
      x.push_back(v);
      x.push_back(-std::nextafter(v, 0.0f));
      x.push_back(std::nextafter(v, 1e30f));
    }
  }
  return x;
}

std::vector<Isa> isas_here() {
  std::vector<Isa> found;
  for (const Isa isa : quant::kAllIsas) {
    if ((quant::built_isas() & quant::detect_isas()).has(isa)) found.push_back(isa);
  }
  return found;
}

}  // namespace

TEST_CASE("half: every f16 has the value of its fields, and returns to itself") {
  std::vector<std::uint16_t> halves(65536);
  for (unsigned i = 0; i < 65536; ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::size_t wrong = 0;
  for (const std::uint16_t half : halves) {
    const float x = quant::f16_to_f32(half);
    if ((half & 0x7c00u) == 0x7c00u) {
      const bool nan = (half & 0x3ffu) != 0;
      if (nan ? !std::isnan(x) : !std::isinf(x)) ++wrong;
      if (std::signbit(x) != ((half & 0x8000u) != 0)) ++wrong;
      // A NaN comes back quiet, the rest of its bits kept.
      if (quant::f32_to_f16(x) != (nan ? half | 0x200u : half)) ++wrong;
    } else {
      if (!same_float(x, static_cast<float>(value_of(half)))) ++wrong;
      if (quant::f32_to_f16(x) != half) ++wrong;
    }
  }
  CHECK(wrong == 0);
  for (const Isa isa : isas_here()) {
    std::vector<float> row(halves.size());
    quant::row_kernels(isa).f16_to_f32(halves.data(), row.data(), row.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const float expected = quant::f16_to_f32(halves[i]);
      if (std::memcmp(&row[i], &expected, sizeof expected) != 0) ++different;  // NaN bits too
    }
    CAPTURE(quant::name_of(isa));
    CHECK(different == 0);
  }
}

TEST_CASE("half: f32 to f16 rounds to the nearest, ties to even") {
  const std::vector<float> x = sampled_floats();
  std::size_t wrong = 0;
  for (const float v : x) {
    const std::uint16_t half = quant::f32_to_f16(v);
    if (std::isnan(v) ? !std::isnan(quant::f16_to_f32(half)) : half != nearest_half(v)) ++wrong;
  }
  CHECK(wrong == 0);
  for (const Isa isa : isas_here()) {
    std::vector<std::uint16_t> row(x.size());
    quant::row_kernels(isa).f32_to_f16(x.data(), row.data(), row.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] != quant::f32_to_f16(x[i])) ++different;
    }
    CAPTURE(quant::name_of(isa));
    CHECK(different == 0);
  }
}

TEST_CASE("half: bf16 is the upper half of an f32, rounded to nearest even") {
  std::size_t wrong = 0;
  for (unsigned i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float x = quant::bf16_to_f32(half);
    if (std::bit_cast<std::uint32_t>(x) != i << 16) ++wrong;
    if (!std::isnan(x) && quant::f32_to_bf16(x) != half) ++wrong;
    if (std::isnan(x) && !std::isnan(quant::bf16_to_f32(quant::f32_to_bf16(x)))) ++wrong;
    if (!std::isfinite(x)) continue;
    // Between this value and the next: below the middle down, above it up, the middle to even.
    const auto bits = static_cast<std::uint32_t>(i << 16);
    if (quant::f32_to_bf16(std::bit_cast<float>(bits | 0x7fffu)) != i) ++wrong;
    if (quant::f32_to_bf16(std::bit_cast<float>(bits | 0x8001u)) != i + 1) ++wrong;
    if (quant::f32_to_bf16(std::bit_cast<float>(bits | 0x8000u)) != i + (i & 1u)) ++wrong;
  }
  CHECK(wrong == 0);
}
