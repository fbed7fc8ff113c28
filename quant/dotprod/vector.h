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
  // acc + the products of two steps by 8 activations.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints first, Ints second, const std::byte* at) noexcept {
    const int8x8_t y = vld1_s8(reinterpret_cast<const std::int8_t*>(at));
    const auto half = [y](uint8x16_t sum, uint8x16_t x0, uint8x16_t x1) noexcept {
      const int32x4_t one = vdotq_lane_s32(s32(sum), s8(x0), y, 0);
      return bytes(vdotq_lane_s32(one, s8(x1), y, 1));
    };
    return {half(acc.a, first.a, second.a), half(acc.b, first.b, second.b)};
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
