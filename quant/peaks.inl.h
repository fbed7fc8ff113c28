// The loops of peaks.h over a class P with types Ints and Floats, how many multiply-adds one
// instruction does, and functions
//   ints floats            start values
//   dot(acc, x)            one step of 8-bit multiply-adds
//   fma(acc, x)            one step of f32 multiply-adds
//   keep(acc)              makes the compiler take the value as it is now
#pragma once

#include <cstdint>

#include "quant/peaks.h"

namespace lockstep::quant {
namespace {

// Enough to cover a latency of 5 cycles at two instructions per cycle.
constexpr int kChains = 12;

template <class P>
std::uint64_t int8_peak(std::uint64_t rounds) noexcept {
  typename P::Ints acc[kChains];
  const typename P::Ints x = P::ints();
  for (auto& chain : acc) chain = x;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (auto& chain : acc) {
      chain = P::dot(chain, x);
      P::keep(chain);
    }
  }
  return rounds * kChains * P::kBytes;
}

template <class P>
std::uint64_t f32_peak(std::uint64_t rounds) noexcept {
  typename P::Floats acc[kChains];
  const typename P::Floats x = P::floats();
  for (auto& chain : acc) chain = x;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (auto& chain : acc) {
      chain = P::fma(chain, x);
      P::keep(chain);
    }
  }
  return rounds * kChains * P::kFloats;
}

template <class P>
constexpr PeakLoops make_peak_loops() noexcept {
  return {.int8 = int8_peak<P>, .f32 = f32_peak<P>};
}

}  // namespace
}  // namespace lockstep::quant
