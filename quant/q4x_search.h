// The inner search of the Q4X encoder: for groups of 32 values the codebook, the scale and the
// levels of the least squared error. Made once per instruction set, and the same result from each,
// so that a file does not depend on the machine that wrote it. No code here: this is included by
// sources that are compiled with instruction-set flags.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::quant::q4x {

// Side data as the search reads it. `scale` ascends; entry 0 is the zero of code 0. Values are
// searched in units of the base, so the base is not here.
struct SearchTables {
  float level[4][16];
  float threshold[4][15];  // halfway between neighbouring levels
  float scale[64];
};

struct Choice {
  float error;        // weighted and squared, in units of the base squared
  float scale;        // with its sign, in units of the base
  std::uint8_t code;  // 0: all values become zero
  std::uint8_t sign;  // 1: negative
  std::uint8_t book;
  std::int8_t index[32];
};

// Searches `groups` groups; `values` in units of the base and finite, `weights` one per value, >= 0
// and finite.
using Search = void (*)(const SearchTables& tables, const float* values, const float* weights,
                        std::size_t groups, Choice* choices) noexcept;

void search_scalar(const SearchTables& tables, const float* values, const float* weights,
                   std::size_t groups, Choice* choices) noexcept;
#if defined(LOCKSTEP_HAS_AVX2)
void search_avx2(const SearchTables& tables, const float* values, const float* weights,
                 std::size_t groups, Choice* choices) noexcept;
#endif

}  // namespace lockstep::quant::q4x
