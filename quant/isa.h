// Which instruction sets this binary was built for, and which of them this processor can run.
//
// The two questions are kept apart: `built_isas()` is fixed by the build, `detect_isas()` by the
// processor. Choosing takes an explicit IsaSet, so the choice for any processor can be tested on
// any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::quant {

// In ascending order of preference. avx2 has FMA and F16C with it; avx512 is F, BW, DQ, VL and
// VNNI; neon is what every 64-bit ARM has, dotprod and i8mm are its extensions FEAT_DotProd and
// FEAT_I8MM.
enum class Isa : std::uint8_t { scalar, avx2, avxvnni, avx512, neon, dotprod, i8mm };

inline constexpr Isa kAllIsas[] = {Isa::scalar, Isa::avx2,    Isa::avxvnni, Isa::avx512,
                                   Isa::neon,   Isa::dotprod, Isa::i8mm};

std::string_view name_of(Isa isa) noexcept;

// Whether every processor that runs `isa` runs code made for `part` too. Code is looked up with
// this, so that a set need not have a kernel for everything: avx512 falls back on avx2, but not on
// avxvnni, which some processors with AVX-512 lack.
constexpr bool includes(Isa isa, Isa part) noexcept {
  if (part == Isa::scalar || part == isa) return true;
  switch (isa) {
    case Isa::avxvnni:
    case Isa::avx512:
      return part == Isa::avx2;
    case Isa::i8mm:
      return part == Isa::dotprod || part == Isa::neon;
    case Isa::dotprod:
      return part == Isa::neon;
    default:
      return false;
  }
}

class IsaSet {
 public:
  constexpr IsaSet() noexcept = default;
  constexpr void add(Isa isa) noexcept { bits_ |= 1u << static_cast<unsigned>(isa); }
  constexpr bool has(Isa isa) const noexcept { return (bits_ >> static_cast<unsigned>(isa)) & 1u; }
  constexpr IsaSet operator&(IsaSet other) const noexcept { return IsaSet(bits_ & other.bits_); }
  constexpr bool operator==(const IsaSet&) const noexcept = default;

 private:
  constexpr explicit IsaSet(std::uint32_t bits) noexcept : bits_(bits) {}
  std::uint32_t bits_ = 1;  // scalar is always there
};

// What the compiler put into this binary.
IsaSet built_isas() noexcept;
// What this processor and operating system can run.
IsaSet detect_isas() noexcept;

// The best member of `available`. `forced` (the value of LOCKSTEP_ISA, empty for none) names one by
// name_of(); throws std::invalid_argument with the list of choices if it is unknown or not
// available.
Isa choose_isa(IsaSet available, std::string_view forced);

}  // namespace lockstep::quant
