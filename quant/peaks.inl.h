// The loops of peaks.h over a class P with types Ints and Floats, how many multiply-adds one
// instruction does, and functions
//   ints floats            start values
//   dot(acc, x)            one step of 8-bit multiply-adds
//   fma(acc, x)            one step of f32 multiply-adds
//   keep(acc)              makes the compiler take the value as it is now; volatile, because clang
//                          computes only once what is kept from equal values
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "quant/peaks.h"

namespace lockstep::quant {
namespace {

// Enough to cover a latency of 5 cycles at two instructions per cycle.
constexpr std::size_t kChains = 12;

// The chains are told apart by template arguments, not by a loop: g++ unrolls a loop over an array
// too late to keep the array in registers, and the loads and stores would be what is measured.
template <class P, class Value, class Step, std::size_t... kChain>
void run_chains(std::uint64_t rounds, Value start, Step step,
                std::index_sequence<kChain...>) noexcept {
  Value acc[] = {(static_cast<void>(kChain), start)...};
  for (std::uint64_t i = 0; i < rounds; ++i) {
    ((acc[kChain] = step(acc[kChain])), ...);
    (P::keep(acc[kChain]), ...);
  }
}

template <class P>
std::uint64_t int8_peak(std::uint64_t rounds) noexcept {
  const typename P::Ints x = P::ints();
  const auto step = [x](typename P::Ints acc) noexcept { return P::dot(acc, x); };
  run_chains<P>(rounds, x, step, std::make_index_sequence<kChains>());
  return rounds * kChains * P::kBytes;
}

template <class P>
std::uint64_t f32_peak(std::uint64_t rounds) noexcept {
  const typename P::Floats x = P::floats();
  const auto step = [x](typename P::Floats acc) noexcept { return P::fma(acc, x); };
  run_chains<P>(rounds, x, step, std::make_index_sequence<kChains>());
  return rounds * kChains * P::kFloats;
}

template <class P>
constexpr PeakLoops make_peak_loops() noexcept {
  return {.int8 = int8_peak<P>, .f32 = f32_peak<P>};
}

}  // namespace
}  // namespace lockstep::quant
