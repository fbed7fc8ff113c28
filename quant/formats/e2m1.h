// What MXFP4 and NVFP4 share: values that are 4-bit floats (E2M1), with small float scales.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep::quant::e2m1 {

// Twice the value of each code, so that dot products stay in integers: 0, 0.5, 1, 1.5, 2, 3, 4, 6
// with the sign in the highest bit (OCP Microscaling Formats specification 1.0).
// Negative zero is zero. Scales are halved instead.
inline constexpr std::int8_t kDoubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(code - 127), the scale type E8M0 of the same specification: an
// exponent alone, 255 is NaN. Exact: half of the smallest is a subnormal f32.
inline float half_of_e8m0(unsigned code) noexcept {
  if (code == 255) return NAN;
  if (code < 2) return std::bit_cast<float>(0x00200000u << code);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code - 1) << 23);
}

// Half of an unsigned E4M3 float (bias 7, no infinity, 127 is NaN: OCP 8-bit Floating Point
// specification 1.0). Scales have no sign: the highest bit is not looked at.
inline float half_of_ue4m3(unsigned code) noexcept {
  const unsigned exponent = (code >> 3) & 15u;
  const unsigned mantissa = code & 7u;
  if (exponent == 15 && mantissa == 7) return NAN;
  if (exponent == 0) return static_cast<float>(mantissa) / 1024.0f;  // half of steps of 2^-9
  // The f32 exponent has a bias of 127, and one less is half.
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127 - 7 - 1) << 23 |
                              static_cast<std::uint32_t>(mantissa) << 20);
}

}  // namespace lockstep::quant::e2m1
