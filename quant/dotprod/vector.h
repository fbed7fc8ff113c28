// The products of bytes by sdot: four to a 32-bit lane, a step of weights by four activations that
// are one lane of their register.
#pragma once

#include "quant/neon/vector.h"

#if defined(__ARM_FEATURE_DOTPROD)

namespace lockstep::quant {
namespace {

struct DotprodVector : NeonPair {
  static constexpr std::size_t kTileTokens = 4;

  // acc + four products of signed bytes in every lane.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints weights, Ints activations) noexcept {
    return {bytes(vdotq_s32(s32(acc.a), s8(weights.a), s8(activations.a))),
            bytes(vdotq_s32(s32(acc.b), s8(weights.b), s8(activations.b)))};
  }
  // acc + the products of step kStep (0 or 1) of those whose activations begin at `at`.
  template <int kStep>
  LOCKSTEP_INLINE static Ints dot_at(Ints acc, Ints weights, const std::byte* at) noexcept {
    const int8x8_t y = vld1_s8(reinterpret_cast<const std::int8_t*>(at));
    return {bytes(vdotq_lane_s32(s32(acc.a), s8(weights.a), y, kStep)),
            bytes(vdotq_lane_s32(s32(acc.b), s8(weights.b), y, kStep))};
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
