// Sixteen lanes in four 128-bit registers, for row_kernels.inl.h and the encoders.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace lockstep::quant {
namespace {

struct NeonSimd {
  static constexpr int kRegisters = 8;
  struct Floats {
    float32x4_t of[4];  // lanes 0-3, 4-7, 8-11, 12-15
  };
  struct Ints {
    int32x4_t of[4];
  };

  template <class F>
  static Floats floats(F f) noexcept {
    return {{f(0), f(1), f(2), f(3)}};
  }
  template <class F>
  static Ints ints(F f) noexcept {
    return {{f(0), f(1), f(2), f(3)}};
  }

  static Floats set(float x) noexcept {
    return floats([&](int) noexcept { return vdupq_n_f32(x); });
  }
  static Floats load(const float* x) noexcept {
    return floats([&](int i) noexcept { return vld1q_f32(x + 4 * i); });
  }
  static Floats load_f16(const std::uint16_t* x) noexcept {
    return floats(
        [&](int i) noexcept { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + 4 * i))); });
  }
  static Floats load_bf16(const std::uint16_t* x) noexcept {
    return floats([&](int i) noexcept {
      return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(x + 4 * i), 16));
    });
  }
  static Floats set_f16(std::uint16_t x) noexcept {
    return floats([&](int) noexcept { return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x))); });
  }
  static Ints load_i8(const std::int8_t* x) noexcept {
    const int8x16_t bytes = vld1q_s8(x);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t high = vmovl_high_s8(bytes);
    return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
             vmovl_high_s16(high)}};
  }
  // Blocks of 4 x 4: neighbouring values of two rows are paired, then pairs of two such.
  static void transpose16(const float* rows, std::size_t stride, float* columns) noexcept {
    const auto doubles = [](float32x4_t x) noexcept { return vreinterpretq_f64_f32(x); };
    const auto put = [](float* to, float64x2_t x) noexcept {
      vst1q_f32(to, vreinterpretq_f32_f64(x));
    };
    for (std::size_t j = 0; j < 16; j += 4) {
      for (std::size_t i = 0; i < 16; i += 4) {
        float32x4_t row[4];
        for (std::size_t r = 0; r < 4; ++r) row[r] = vld1q_f32(rows + (j + r) * stride + i);
        const float64x2_t even01 = doubles(vtrn1q_f32(row[0], row[1]));
        const float64x2_t even23 = doubles(vtrn1q_f32(row[2], row[3]));
        const float64x2_t odd01 = doubles(vtrn2q_f32(row[0], row[1]));
        const float64x2_t odd23 = doubles(vtrn2q_f32(row[2], row[3]));
        float* const to = columns + i * 16 + j;
        put(to, vtrn1q_f64(even01, even23));
        put(to + 16, vtrn1q_f64(odd01, odd23));
        put(to + 32, vtrn2q_f64(even01, even23));
        put(to + 48, vtrn2q_f64(odd01, odd23));
      }
    }
  }
  static void store(const Floats& x, float* y) noexcept {
    for (int i = 0; i < 4; ++i) vst1q_f32(y + 4 * i, x.of[i]);
  }
  static void store_f16(const Floats& x, std::uint16_t* y) noexcept {
    for (int i = 0; i < 4; ++i) vst1_u16(y + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.of[i])));
  }
  static void store_i8(const Ints& x, std::int8_t* y) noexcept {
    const int16x8_t low = vcombine_s16(vmovn_s32(x.of[0]), vmovn_s32(x.of[1]));
    const int16x8_t high = vcombine_s16(vmovn_s32(x.of[2]), vmovn_s32(x.of[3]));
    vst1q_s8(y, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  }

  static Floats add(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) noexcept { return vaddq_f32(a.of[i], b.of[i]); });
  }
  static Floats sub(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) noexcept { return vsubq_f32(a.of[i], b.of[i]); });
  }
  static Floats mul(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) noexcept { return vmulq_f32(a.of[i], b.of[i]); });
  }
  static Floats div(const Floats& a, const Floats& b) noexcept {
    return floats([&](int i) noexcept { return vdivq_f32(a.of[i], b.of[i]); });
  }
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) noexcept {
    return floats([&](int i) noexcept { return vfmaq_f32(c.of[i], a.of[i], b.of[i]); });
  }
  // Comparisons and selections: the instructions fmin and fmax return NaN where either is NaN.
  static float32x4_t select_less(float32x4_t a, float32x4_t b, float32x4_t x,
                                 float32x4_t y) noexcept {
    return vbslq_f32(vcltq_f32(a, b), x, y);
  }
  static Floats min(const Floats& a, const Floats& b) noexcept { return select_less(a, b, a, b); }
  static float32x4_t max(float32x4_t a, float32x4_t b) noexcept { return select_less(b, a, a, b); }
  static Floats max(const Floats& a, const Floats& b) noexcept { return select_less(b, a, a, b); }
  static Floats select_less(const Floats& a, const Floats& b, const Floats& x,
                            const Floats& y) noexcept {
    return floats([&](int i) noexcept { return select_less(a.of[i], b.of[i], x.of[i], y.of[i]); });
  }
  static Ints less(const Floats& a, const Floats& b) noexcept {
    return ints([&](int i) noexcept { return vreinterpretq_s32_u32(vcltq_f32(a.of[i], b.of[i])); });
  }
  // Four bytes of the table for every index: those of 4 * index and the next three.
  static Floats lookup8(const float* table, const Ints& index) noexcept {
    const uint8x16x2_t bytes{
        {vreinterpretq_u8_f32(vld1q_f32(table)), vreinterpretq_u8_f32(vld1q_f32(table + 4))}};
    return floats([&](int i) noexcept {
      const int32x4_t at = vmlaq_n_s32(vdupq_n_s32(0x03020100), index.of[i], 0x04040404);
      return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_s32(at)));
    });
  }
  static Floats or_nan(const Floats& y, const Floats& x) noexcept {
    return floats(
        [&](int i) noexcept { return vbslq_f32(vceqq_f32(x.of[i], x.of[i]), y.of[i], x.of[i]); });
  }

  static Ints round(const Floats& x) noexcept {
    return ints([&](int i) noexcept { return vcvtnq_s32_f32(x.of[i]); });
  }
  static Floats to_float(const Ints& n) noexcept {
    return floats([&](int i) noexcept { return vcvtq_f32_s32(n.of[i]); });
  }
  static Floats power_of_two(const Ints& n) noexcept {
    return floats([&](int i) noexcept {
      return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n.of[i], vdupq_n_s32(127)), 23));
    });
  }
  static Ints halve(const Ints& n) noexcept {
    return ints([&](int i) noexcept { return vshrq_n_s32(n.of[i], 1); });
  }
  static Ints add_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) noexcept { return vaddq_s32(a.of[i], b.of[i]); });
  }
  static Ints sub_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) noexcept { return vsubq_s32(a.of[i], b.of[i]); });
  }
  static Ints abs_bits(const Floats& x) noexcept {
    return ints([&](int i) noexcept { return vreinterpretq_s32_f32(vabsq_f32(x.of[i])); });
  }
  static Ints max_ints(const Ints& a, const Ints& b) noexcept {
    return ints([&](int i) noexcept { return vmaxq_s32(a.of[i], b.of[i]); });
  }

  // Lanes j and j + 8, then j and j + 4: one register is left.
  static float32x4_t fold(const Floats& x) noexcept {
    return vaddq_f32(vaddq_f32(x.of[0], x.of[2]), vaddq_f32(x.of[1], x.of[3]));
  }
  static float reduce_add(const Floats& x) noexcept {
    const float32x4_t four = fold(x);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  // The last two steps of four sums at once: lane j + lane j + 2 of each, then those two.
  static void reduce_add4(const Floats (&x)[4], float* sums) noexcept {
    const auto halves_added = [](float32x4_t a, float32x4_t b) noexcept {
      const float64x2_t a2 = vreinterpretq_f64_f32(a);
      const float64x2_t b2 = vreinterpretq_f64_f32(b);
      return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(a2, b2)),
                       vreinterpretq_f32_f64(vzip2q_f64(a2, b2)));
    };
    vst1q_f32(sums, vpaddq_f32(halves_added(fold(x[0]), fold(x[1])),
                               halves_added(fold(x[2]), fold(x[3]))));
  }
  static float reduce_max(const Floats& x) noexcept {
    const float32x4_t four = max(max(x.of[0], x.of[2]), max(x.of[1], x.of[3]));
    float lane[4];
    vst1q_f32(lane, four);
    const auto greater = [](float a, float b) noexcept { return a > b ? a : b; };
    return greater(greater(lane[0], lane[2]), greater(lane[1], lane[3]));
  }
  static std::int32_t reduce_add_ints(const Ints& x) noexcept {
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.of[0], x.of[1]), vaddq_s32(x.of[2], x.of[3])));
  }
  static std::int32_t reduce_max_ints(const Ints& x) noexcept {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.of[0], x.of[1]), vmaxq_s32(x.of[2], x.of[3])));
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
