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

// In ascending order of preference.
enum class Isa : std::uint8_t { scalar, avx2 };

inline constexpr Isa kAllIsas[] = {Isa::scalar, Isa::avx2};

std::string_view name_of(Isa isa) noexcept;

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
