// All encoders of one instruction set, as its encode.cpp hands them out.
#pragma once

#include "quant/encode/blocks.inl.h"
#include "quant/encode/float4_blocks.inl.h"
#include "quant/encode/small_blocks.inl.h"

namespace lockstep::quant {
namespace {

// S is the policy class of simd.h; see row_kernels.inl.h. Beyond what is listed there the searches
// use
//   select_less less             a < b ? x : y; -1 where a < b, else 0; false if a or b is NaN
//   lookup8 add_ints             entries 0 to 7 of a table of 8 floats
template <class S>
constexpr SearchingEncoders make_encoders() noexcept {
  return {.q2_k = encode_row<EncodeAffine<EncodeQ2K>, S, q2_k::kGroups>,
          .q3_k = encode_row<EncodeScaledBlocks<EncodeQ3K>, S, q3_k::kGroups>,
          .q4_k = encode_row<EncodeAffine<EncodeQ4K>, S, q4_k::kGroups>,
          .q5_k = encode_row<EncodeAffine<EncodeQ5K>, S, q5_k::kGroups>,
          .q6_k = encode_row<EncodeScaledBlocks<EncodeQ6K>, S, q6_k::kGroups>,
          .iq4_nl = encode_row<EncodeScaled<PackIq4Nl>, S, 1>,
          .iq4_xs = encode_row<EncodeScaledBlocks<EncodeIq4Xs>, S, iq4_xs::kGroups>,
          .mxfp4 = encode_row<EncodeMxfp4, S, 1>,
          .nvfp4 = encode_row<EncodeNvfp4, S, nvfp4::kGroups>,
          .q4_0 = encode_row<EncodeScaled<PackQ4_0>, S, 1>,
          .q4_1 = encode_row<EncodeScaledAndMin<PackQ4_1>, S, 1>,
          .q5_0 = encode_row<EncodeScaled<PackQ5_0>, S, 1>,
          .q5_1 = encode_row<EncodeScaledAndMin<PackQ5_1>, S, 1>,
          .q8_0 = encode_row<EncodeScaled<PackQ8_0>, S, 1>};
}

}  // namespace
}  // namespace lockstep::quant
