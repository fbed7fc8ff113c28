// The encoders that search for scales, which every instruction set compiles from
// quant/encode/*.inl.h. All instruction sets write the same bytes.
#pragma once

#include <type_traits>

#include "quant/encode.h"

namespace lockstep::quant {

struct SearchingEncoders {
  Encoder q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4, nvfp4;
  // For rows with importance. Without it these formats have simple rules of their own, which
  // formats/*.h keep, byte for byte those of the public tools.
  Encoder q4_0, q4_1, q5_0, q5_1, q8_0;
};

// FormatTraits::encode made of one of them and, where a format has it, the simple rule.
template <const SearchingEncoders& kEncoders, Encoder SearchingEncoders::*kSearching,
          auto kSimple = nullptr>
void encode_with(const float* values, const float* importance, std::byte* blocks,
                 std::size_t n) noexcept {
  if constexpr (!std::is_null_pointer_v<decltype(kSimple)>) {
    if (importance == nullptr) return kSimple(values, importance, blocks, n);
  }
  (kEncoders.*kSearching)(values, importance, blocks, n);
}

}  // namespace lockstep::quant
