// One panel of 8 rows in two 128-bit registers, rows 0-3 and 4-7, for the kernels of quant/panels/.
// Everything but the products of bytes, for which NEON, dotprod and i8mm each have instructions of
// their own. Weights are signed.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "quant/panels/panel.inl.h"

namespace lockstep::quant {
namespace {

struct NeonPair {
  struct Ints {
    uint8x16_t a, b;
  };
  struct Floats {
    float32x4_t a, b;
  };
  // Factors of the sums of 16 activations: one for each of two neighbours, or the same for both.
  struct Pair {
    Ints first, second;
  };
  struct Both {
    Ints factor;
  };
  using SumPair = int16x4_t;

  static constexpr bool kSigned = true;
  static constexpr std::size_t kPanels = 1;
  static constexpr std::size_t kRows = 8;

  // f of both halves, from and to the lane types it wants.
  template <class F>
  LOCKSTEP_INLINE static Ints each(Ints x, F f) noexcept {
    return {f(x.a), f(x.b)};
  }
  template <class F>
  LOCKSTEP_INLINE static Ints each(Ints x, Ints y, F f) noexcept {
    return {f(x.a, y.a), f(x.b, y.b)};
  }
  LOCKSTEP_INLINE static int32x4_t s32(uint8x16_t x) noexcept { return vreinterpretq_s32_u8(x); }
  LOCKSTEP_INLINE static uint32x4_t u32(uint8x16_t x) noexcept { return vreinterpretq_u32_u8(x); }
  LOCKSTEP_INLINE static uint16x8_t u16(uint8x16_t x) noexcept { return vreinterpretq_u16_u8(x); }
  LOCKSTEP_INLINE static int8x16_t s8(uint8x16_t x) noexcept { return vreinterpretq_s8_u8(x); }
  LOCKSTEP_INLINE static uint8x16_t bytes(int32x4_t x) noexcept { return vreinterpretq_u8_s32(x); }
  LOCKSTEP_INLINE static uint8x16_t bytes(uint32x4_t x) noexcept { return vreinterpretq_u8_u32(x); }
  LOCKSTEP_INLINE static uint8x16_t bytes(uint16x8_t x) noexcept { return vreinterpretq_u8_u16(x); }
  LOCKSTEP_INLINE static uint8x16_t bytes(uint64x2_t x) noexcept { return vreinterpretq_u8_u64(x); }

  LOCKSTEP_INLINE static void prefetch(const std::byte* at) noexcept { __builtin_prefetch(at); }
  LOCKSTEP_INLINE static uint8x16_t load16(const std::byte* at) noexcept {
    return vld1q_u8(reinterpret_cast<const std::uint8_t*>(at));
  }
  // 32, 16 and 8 bytes of the panel.
  LOCKSTEP_INLINE static Ints load(const std::byte* const (&panels)[1], std::size_t at) noexcept {
    return {load16(panels[0] + at), load16(panels[0] + at + 16)};
  }
  LOCKSTEP_INLINE static Floats halves(const std::byte* const (&panels)[1],
                                       std::size_t at) noexcept {
    const float16x8_t all = vreinterpretq_f16_u8(load16(panels[0] + at));
    return {vcvt_f32_f16(vget_low_f16(all)), vcvt_high_f32_f16(all)};
  }
  LOCKSTEP_INLINE static Ints widen(uint16x8_t x) noexcept {
    return {bytes(vmovl_u16(vget_low_u16(x))), bytes(vmovl_high_u16(x))};
  }
  LOCKSTEP_INLINE static Ints shorts_to_ints(const std::byte* const (&panels)[1],
                                             std::size_t at) noexcept {
    return widen(u16(load16(panels[0] + at)));
  }
  LOCKSTEP_INLINE static Ints bytes_to_ints(const std::byte* const (&panels)[1],
                                            std::size_t at) noexcept {
    return widen(vmovl_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(panels[0] + at))));
  }
  LOCKSTEP_INLINE static Floats from_half_bits(Ints bits) noexcept {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(u32(bits.a)))),
            vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(u32(bits.b))))};
  }

  LOCKSTEP_INLINE static Ints broadcast128(const std::byte* at) noexcept {
    const uint8x16_t x = load16(at);
    return {x, x};
  }
  LOCKSTEP_INLINE static Floats broadcast_float(const std::byte* at) noexcept {
    const float32x4_t x = vld1q_dup_f32(reinterpret_cast<const float*>(at));
    return {x, x};
  }
  LOCKSTEP_INLINE static Ints set8(int x) noexcept {
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(x));
    return {all, all};
  }
  LOCKSTEP_INLINE static Ints set32(int x) noexcept {
    const uint8x16_t all = bytes(vdupq_n_s32(x));
    return {all, all};
  }
  LOCKSTEP_INLINE static Floats set(float x) noexcept { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }

  LOCKSTEP_INLINE static Ints bit_and(Ints x, Ints y) noexcept {
    return {vandq_u8(x.a, y.a), vandq_u8(x.b, y.b)};
  }
  LOCKSTEP_INLINE static Ints bit_or(Ints x, Ints y) noexcept {
    return {vorrq_u8(x.a, y.a), vorrq_u8(x.b, y.b)};
  }
  LOCKSTEP_INLINE static Ints add(Ints x, Ints y) noexcept {
    return {bytes(vaddq_s32(s32(x.a), s32(y.a))), bytes(vaddq_s32(s32(x.b), s32(y.b)))};
  }
  LOCKSTEP_INLINE static Ints sub(Ints x, Ints y) noexcept {
    return {bytes(vsubq_s32(s32(x.a), s32(y.a))), bytes(vsubq_s32(s32(x.b), s32(y.b)))};
  }
  LOCKSTEP_INLINE static Ints sub8(Ints x, Ints y) noexcept {
    return {vsubq_u8(x.a, y.a), vsubq_u8(x.b, y.b)};
  }
  LOCKSTEP_INLINE static Ints mul(Ints x, Ints y) noexcept {
    return {bytes(vmulq_s32(s32(x.a), s32(y.a))), bytes(vmulq_s32(s32(x.b), s32(y.b)))};
  }
  LOCKSTEP_INLINE static Ints max(Ints x, Ints y) noexcept {
    return {bytes(vmaxq_s32(s32(x.a), s32(y.a))), bytes(vmaxq_s32(s32(x.b), s32(y.b)))};
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right16(Ints x) noexcept {
    return {bytes(vshrq_n_u16(u16(x.a), kBits)), bytes(vshrq_n_u16(u16(x.b), kBits))};
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_left32(Ints x) noexcept {
    return {bytes(vshlq_n_u32(u32(x.a), kBits)), bytes(vshlq_n_u32(u32(x.b), kBits))};
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right32(Ints x) noexcept {
    if constexpr (kBits == 0) return x;
    return {bytes(u32(x.a) >> kBits), bytes(u32(x.b) >> kBits)};
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right_signed32(Ints x) noexcept {
    return {bytes(vshrq_n_s32(s32(x.a), kBits)), bytes(vshrq_n_s32(s32(x.b), kBits))};
  }
  // Shifts by a number that unrolling makes a constant, which the intrinsics do not take.
  LOCKSTEP_INLINE static Ints shift_right16(Ints x, int bits) noexcept {
    return {bytes(u16(x.a) >> static_cast<std::uint16_t>(bits)),
            bytes(u16(x.b) >> static_cast<std::uint16_t>(bits))};
  }
  LOCKSTEP_INLINE static Ints shift_left16(Ints x, int bits) noexcept {
    return {bytes(u16(x.a) << static_cast<std::uint16_t>(bits)),
            bytes(u16(x.b) << static_cast<std::uint16_t>(bits))};
  }
  LOCKSTEP_INLINE static Ints shift_left32(Ints x, int bits) noexcept {
    const int32x4_t count = vdupq_n_s32(bits);
    return {bytes(vshlq_u32(u32(x.a), count)), bytes(vshlq_u32(u32(x.b), count))};
  }
  // Bits [kShift, kShift + kWidth) of every byte.
  template <int kShift, int kWidth>
  LOCKSTEP_INLINE static Ints bits(Ints x) noexcept {
    if constexpr (kShift == 0) {
      return bit_and(x, set8((1 << kWidth) - 1));
    } else {
      const Ints shifted{vshrq_n_u8(x.a, kShift), vshrq_n_u8(x.b, kShift)};
      return kShift + kWidth == 8 ? shifted : bit_and(shifted, set8((1 << kWidth) - 1));
    }
  }
  // `x` with the bits of `from` where the mask has ones.
  LOCKSTEP_INLINE static Ints insert(Ints x, Ints from, Ints mask) noexcept {
    return {vbslq_u8(mask.a, from.a, x.a), vbslq_u8(mask.b, from.b, x.b)};
  }
  // The top bits of 8 bytes: the product gathers the bits, 7 places apart, in its top byte.
  LOCKSTEP_INLINE static unsigned top_bits(const std::byte* at) noexcept {
    std::uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return static_cast<unsigned>((word & 0x8080808080808080u) * 0x0002040810204081u >> 56);
  }
  // Byte index[i] of the same half of the table.
  LOCKSTEP_INLINE static Ints lookup(Ints table, Ints index) noexcept {
    return {vqtbl1q_u8(table.a, index.a), vqtbl1q_u8(table.b, index.b)};
  }
  LOCKSTEP_INLINE static Ints unpack_low32(Ints x, Ints y) noexcept {
    return {bytes(vzip1q_s32(s32(x.a), s32(y.a))), bytes(vzip1q_s32(s32(x.b), s32(y.b)))};
  }
  LOCKSTEP_INLINE static Ints unpack_high32(Ints x, Ints y) noexcept {
    return {bytes(vzip2q_s32(s32(x.a), s32(y.a))), bytes(vzip2q_s32(s32(x.b), s32(y.b)))};
  }
  LOCKSTEP_INLINE static uint64x2_t u64(uint8x16_t x) noexcept { return vreinterpretq_u64_u8(x); }
  LOCKSTEP_INLINE static Ints unpack_low64(Ints x, Ints y) noexcept {
    return {bytes(vzip1q_u64(u64(x.a), u64(y.a))), bytes(vzip1q_u64(u64(x.b), u64(y.b)))};
  }
  LOCKSTEP_INLINE static Ints unpack_high64(Ints x, Ints y) noexcept {
    return {bytes(vzip2q_u64(u64(x.a), u64(y.a))), bytes(vzip2q_u64(u64(x.b), u64(y.b)))};
  }

  LOCKSTEP_INLINE static SumPair load_sums(const std::byte* at) noexcept {
    return vreinterpret_s16_s32(vld1_dup_s32(reinterpret_cast<const std::int32_t*>(at)));
  }
  LOCKSTEP_INLINE static Pair pair(Ints first, Ints second) noexcept { return {first, second}; }
  LOCKSTEP_INLINE static Both both(Ints factor) noexcept { return {factor}; }
  LOCKSTEP_INLINE static Ints dot_sums(Ints acc, SumPair sums, Pair factors) noexcept {
    const int32x4_t wide = vmovl_s16(sums);
    const auto half = [&](uint8x16_t x, uint8x16_t first, uint8x16_t second) noexcept {
      const int32x4_t one = vmlaq_laneq_s32(s32(x), s32(first), wide, 0);
      return bytes(vmlaq_laneq_s32(one, s32(second), wide, 1));
    };
    return {half(acc.a, factors.first.a, factors.second.a),
            half(acc.b, factors.first.b, factors.second.b)};
  }
  LOCKSTEP_INLINE static Ints dot_sums(Ints acc, SumPair sums, Both factors) noexcept {
    const int32x2_t total = vpaddl_s16(sums);
    return {bytes(vmlaq_lane_s32(s32(acc.a), s32(factors.factor.a), total, 0)),
            bytes(vmlaq_lane_s32(s32(acc.b), s32(factors.factor.b), total, 0))};
  }

  LOCKSTEP_INLINE static Floats as_floats(Ints x) noexcept {
    return {vreinterpretq_f32_u8(x.a), vreinterpretq_f32_u8(x.b)};
  }
  LOCKSTEP_INLINE static Floats to_float(Ints x) noexcept {
    return {vcvtq_f32_s32(s32(x.a)), vcvtq_f32_s32(s32(x.b))};
  }
  LOCKSTEP_INLINE static Floats mul(Floats x, Floats y) noexcept {
    return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)};
  }
  LOCKSTEP_INLINE static Floats fma(Floats x, Floats y, Floats z) noexcept {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
  }
  LOCKSTEP_INLINE static Floats fnma(Floats x, Floats y, Floats z) noexcept {
    return {vfmsq_f32(z.a, x.a, y.a), vfmsq_f32(z.b, x.b, y.b)};
  }
  // The first `rows` (1..8) lanes.
  LOCKSTEP_INLINE static void store(Floats x, float* y, std::size_t rows) noexcept {
    if (rows == kRows) {
      vst1q_f32(y, x.a);
      vst1q_f32(y + 4, x.b);
      return;
    }
    float lane[kRows];
    vst1q_f32(lane, x.a);
    vst1q_f32(lane + 4, x.b);
    for (std::size_t i = 0; i < rows; ++i) y[i] = lane[i];
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
