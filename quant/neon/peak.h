// What the peak loops of the ARM instruction sets share: all but the product of bytes.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include "quant/peaks.inl.h"

namespace lockstep::quant {
namespace {

struct NeonPeak {
  using Ints = int32x4_t;
  using Floats = float32x4_t;
  static constexpr std::uint64_t kFloats = 4;
  static Ints ints() noexcept { return vdupq_n_s32(0x01010101); }
  static Floats floats() noexcept { return vdupq_n_f32(0.5f); }
  static int8x16_t bytes(Ints x) noexcept { return vreinterpretq_s8_s32(x); }
  static Floats fma(Floats acc, Floats x) noexcept { return vfmaq_f32(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+w"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+w"(x)); }
};

}  // namespace
}  // namespace lockstep::quant

#endif
