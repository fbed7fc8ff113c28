// Exponential and logarithm in plain IEEE additions, multiplications and divisions: the same bits
// on every machine, with every compiler and every C library, which std::exp and std::log do not
// promise. What is drawn and reported from logits goes through here; contraction is switched off
// for the whole project.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep {

namespace portable_math {

inline constexpr double kLn2High = 0.693147180369123816490;  // 32 bits: k * kLn2High is exact
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

inline constexpr std::array<double, 14> kInverseFactorials = [] {
  std::array<double, 14> inverse{1.0};
  for (std::size_t n = 1; n < inverse.size(); ++n) {
    inverse[n] = inverse[n - 1] / static_cast<double>(n);
  }
  return inverse;
}();

inline constexpr std::array<double, 12> kInverseOdds = [] {
  std::array<double, 12> inverse{};
  for (std::size_t n = 0; n < inverse.size(); ++n) {
    inverse[n] = 1.0 / static_cast<double>(2 * n + 1);
  }
  return inverse;
}();

// The polynomial with these coefficients, without a loop: compilers do not put a loop inside a loop
// into vector registers.
template <std::size_t N>
inline double horner(double x, const std::array<double, N>& coefficients) noexcept {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    double sum = 0.0;
    ((sum = sum * x + coefficients[N - 1 - I]), ...);
    return sum;
  }
  (std::make_index_sequence<N>());
}

}  // namespace portable_math

// e^x for -700 <= x <= 0, to about one unit in the last place. Free of branches, so that a loop
// over a vocabulary can use vector registers.
inline double bounded_exponential(double x) noexcept {
  using namespace portable_math;
  constexpr double kLog2E = 1.44269504088896340736;
  const auto k = static_cast<std::int32_t>(x * kLog2E - 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);  // 2^k
  return horner(r, kInverseFactorials) * power;
}

inline constexpr double kLowestExponent = -700.0;

// e^x for x <= 0, -infinity included. Below -700 it is 0: far below anything that is ever drawn,
// and no subnormals.
inline double exponential(double x) noexcept {
  return x < kLowestExponent ? 0.0 : bounded_exponential(x);
}

// The natural logarithm of a positive normal number, to about one unit in the last place: from the
// series of artanh((m - 1) / (m + 1)), with m the mantissa brought near 1.
inline double logarithm(double x) noexcept {
  using namespace portable_math;
  constexpr double kSqrt2 = 1.41421356237309504880;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & kMantissa) | (std::uint64_t{1023} << 52));
  if (m > kSqrt2) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1.0) / (m + 1.0);  // |s| <= 0.172
  const double square = s * s;
  return k * kLn2High + (2.0 * s * horner(square, kInverseOdds) + k * kLn2Low);
}

}  // namespace lockstep
