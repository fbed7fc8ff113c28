// How fast one thread can multiply and add when nothing else is in the way: the roof against which
// prefill is measured. The loops stay in registers and use the instructions of the matmul kernels.
#pragma once

#include <cstdint>

#include "quant/isa.h"

namespace lockstep::quant {

// Each runs `rounds` rounds and returns how many multiply-adds that was.
struct PeakLoops {
  // 8-bit weights times 8-bit activations, as the packed kernels of the instruction set do it: with
  // AVX2 vpmaddubsw and vpaddw, else the dot product instruction.
  std::uint64_t (*int8)(std::uint64_t rounds) noexcept = nullptr;
  // f32 fma, as the dense kernels do it.
  std::uint64_t (*f32)(std::uint64_t rounds) noexcept = nullptr;
};

// Of the best instruction set that `isa` includes.
PeakLoops peak_loops(Isa isa) noexcept;

}  // namespace lockstep::quant
