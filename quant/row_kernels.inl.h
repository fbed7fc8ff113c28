// The row arithmetic of rows.h, written once over a 16-lane vector type and included by the
// kernels.cpp of every instruction set after its simd.h. One source means one order of operations,
// hence the same bits everywhere. Everything here is in an anonymous namespace: each object keeps
// its own copy, compiled for its own instruction set. (A NaN result is a NaN everywhere; which of
// the NaNs is not promised.)
//
// S, the policy class of simd.h, has types Floats and Ints (16 lanes of f32 and int32), the
// constant kRegisters (how many Floats the register file holds) and functions
//
//   set set_f16                                   one value in all lanes
//   load store load_f16 store_f16 load_bf16       memory, 16 values, unaligned
//   add sub mul div fma                           IEEE, round to nearest; fma(a, b, c) = a * b + c
//   min max                                       a < b ? a : b, a > b ? a : b: the second if NaN
//   or_nan(y, x)                                  y, but x where x is NaN
//   round to_float power_of_two                   nearest even for |x| < 2^22; Ints to f32; 2^n
//   halve sub_ints abs_bits max_ints              n >> 1 (toward -inf), ..., bits of |x| as int32
//   load_i8 store_i8                              16 bytes to Ints; the low bytes of Ints
//   reduce_add reduce_max                         tree 16-8-4-2-1: lane j with lane j + 8, ...
//   reduce_add4                                   stores the sums of four vectors
//   transpose16(rows, stride, columns)            columns[i * 16 + j] = rows[j * stride + i], 16 x
//   16
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/row_tiles.inl.h"
#include "quant/rows.h"

namespace lockstep::quant {
namespace {

// The last n < 16 values of a row, the rest `fill`. Copied value by value, so nothing is read past
// the end.
template <class S>
typename S::Floats load_tail(const float* x, std::size_t n, float fill) noexcept {
  float lane[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lane[i] = i < n ? x[i] : fill;
  return S::load(lane);
}

template <class S>
void store_tail(typename S::Floats x, float* y, std::size_t n) noexcept {
  float lane[kLanes];
  S::store(x, lane);
  for (std::size_t i = 0; i < n; ++i) y[i] = lane[i];
}

struct HalfTail {
  std::uint16_t lane[kLanes] = {};
  HalfTail(const std::uint16_t* x, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i) lane[i] = x[i];
  }
};

// y[i] = f(x[i])
template <class S, class F>
void map(const float* x, float* y, std::size_t n, F f) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(f(S::load(x + i)), y + i);
  if (i < n) store_tail<S>(f(load_tail<S>(x + i, n - i, 0.0f)), y + i, n - i);
}

// z[i] = f(x[i], y[i])
template <class S, class F>
void map(const float* x, const float* y, float* z, std::size_t n, F f) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(f(S::load(x + i), S::load(y + i)), z + i);
  if (i < n) {
    const std::size_t rest = n - i;
    store_tail<S>(f(load_tail<S>(x + i, rest, 0.0f), load_tail<S>(y + i, rest, 0.0f)), z + i, rest);
  }
}

// Values of either width as f32: whole vectors, and the last n < 16 of a row with zeros behind.
template <class S>
typename S::Floats load_any(const float* x) noexcept {
  return S::load(x);
}
template <class S>
typename S::Floats load_any(const std::uint16_t* x) noexcept {
  return S::load_f16(x);
}
template <class S>
typename S::Floats load_rest(const float* x, std::size_t n) noexcept {
  return load_tail<S>(x, n, 0.0f);
}
template <class S>
typename S::Floats load_rest(const std::uint16_t* x, std::size_t n) noexcept {
  return S::load_f16(HalfTail(x, n).lane);
}

template <class S, class T>
float dot(const float* x, const T* y, std::size_t n) noexcept {
  typename S::Floats acc = S::set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = S::fma(S::load(x + i), load_any<S>(y + i), acc);
  if (i < n) acc = S::fma(load_rest<S>(x + i, n - i), load_rest<S>(y + i, n - i), acc);
  return S::reduce_add(acc);
}

// Four rows share the loads of x, and their sums are folded together.
template <class S, class T>
void dot_rows(const float* x, const T* rows, std::size_t stride, std::size_t count, std::size_t n,
              float* dots) noexcept {
  std::size_t j = 0;
  for (; n % kLanes == 0 && j + 4 <= count; j += 4) {
    const T* row = rows + j * stride;
    const auto zero = S::set(0.0f);
    typename S::Floats acc[4] = {zero, zero, zero, zero};
    for (std::size_t i = 0; i < n; i += kLanes) {
      const auto part = S::load(x + i);
      for (std::size_t r = 0; r < 4; ++r) {
        acc[r] = S::fma(part, load_any<S>(row + r * stride + i), acc[r]);
      }
    }
    S::reduce_add4(acc, dots + j);
  }
  for (; j < count; ++j) dots[j] = dot<S>(x, rows + j * stride, n);
}

template <class S, class T>
void axpy(float a, const T* x, float* y, std::size_t n) noexcept {
  const typename S::Floats factor = S::set(a);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    S::store(S::fma(factor, load_any<S>(x + i), S::load(y + i)), y + i);
  }
  if (i < n) {
    const std::size_t rest = n - i;
    store_tail<S>(S::fma(factor, load_rest<S>(x + i, rest), load_rest<S>(y + i, rest)), y + i,
                  rest);
  }
}

// kWide vectors of y stay in registers while all rows go by.
template <class S, int kWide, class T>
void axpy_rows_part(const float* factors, const T* rows, std::size_t stride, std::size_t count,
                    float* y) noexcept {
  typename S::Floats acc[kWide];
  for (int c = 0; c < kWide; ++c) acc[c] = S::load(y + c * static_cast<int>(kLanes));
  for (std::size_t j = 0; j < count; ++j) {
    const auto factor = S::set(factors[j]);
    const T* row = rows + j * stride;
    for (int c = 0; c < kWide; ++c) {
      acc[c] = S::fma(factor, load_any<S>(row + c * static_cast<int>(kLanes)), acc[c]);
    }
  }
  for (int c = 0; c < kWide; ++c) S::store(acc[c], y + c * static_cast<int>(kLanes));
}

template <class S, class T>
void axpy_rows(const float* factors, const T* rows, std::size_t stride, std::size_t count,
               std::size_t n, float* y) noexcept {
  constexpr int kWide = 4;
  std::size_t i = 0;
  for (; i + kWide * kLanes <= n; i += kWide * kLanes) {
    axpy_rows_part<S, kWide>(factors, rows + i, stride, count, y + i);
  }
  for (; i + kLanes <= n; i += kLanes) {
    axpy_rows_part<S, 1>(factors, rows + i, stride, count, y + i);
  }
  for (std::size_t j = 0; i < n && j < count; ++j) {
    axpy<S>(factors[j], rows + j * stride + i, y + i, n - i);
  }
}

template <class S>
float sum(const float* x, std::size_t n) noexcept {
  typename S::Floats acc = S::set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = S::add(acc, S::load(x + i));
  if (i < n) acc = S::add(acc, load_tail<S>(x + i, n - i, 0.0f));
  return S::reduce_add(acc);
}

template <class S>
float sum_squares(const float* x, std::size_t n) noexcept {
  return dot<S>(x, x, n);
}

// With the new value first, max keeps the old one when the new one is NaN.
template <class S>
float max(const float* x, std::size_t n) noexcept {
  constexpr float kLowest = -__builtin_inff();
  typename S::Floats acc = S::set(kLowest);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = S::max(S::load(x + i), acc);
  if (i < n) acc = S::max(load_tail<S>(x + i, n - i, kLowest), acc);
  return S::reduce_max(acc);
}

template <class S>
void scale(float a, const float* x, float* y, std::size_t n) noexcept {
  const typename S::Floats factor = S::set(a);
  map<S>(x, y, n, [factor](auto v) noexcept { return S::mul(v, factor); });
}

template <class S>
void add(const float* x, const float* y, float* z, std::size_t n) noexcept {
  map<S>(x, y, z, n, [](auto v, auto w) noexcept { return S::add(v, w); });
}

template <class S>
void mul(const float* x, const float* y, float* z, std::size_t n) noexcept {
  map<S>(x, y, z, n, [](auto v, auto w) noexcept { return S::mul(v, w); });
}

// x = n ln 2 + r with n = round(x / ln 2), so that |r| <= ln 2 / 2.
template <class S>
struct Reduced {
  typename S::Ints n;
  typename S::Floats r;

  explicit Reduced(typename S::Floats x) noexcept
      : n(S::round(S::mul(x, S::set(0x1.715476p+0f)))) {  // 1 / ln 2
    const auto n_float = S::to_float(n);
    r = S::fma(n_float, S::set(-0x1.62e4p-1f), x);     // ln 2, upper bits: the product is exact
    r = S::fma(n_float, S::set(-0x1.7f7d1cp-20f), r);  // and the rest of ln 2
  }
  // (e^r - 1 - r) / r^2. The Taylor polynomial of e^r of degree 7 is within 0.13 ulp, which saves a
  // table of fitted numbers for one more fma.
  typename S::Floats series() const noexcept {
    auto p = S::set(1.0f / 5040.0f);
    p = S::fma(p, r, S::set(1.0f / 720.0f));
    p = S::fma(p, r, S::set(1.0f / 120.0f));
    p = S::fma(p, r, S::set(1.0f / 24.0f));
    p = S::fma(p, r, S::set(1.0f / 6.0f));
    return S::fma(p, r, S::set(0.5f));
  }
};

// e^x = 2^n * e^r. Scaling by 2^n in two halves reaches infinity and the subnormals with one
// rounding. The clamps are where the result has become infinity or zero, and keep n small.
template <class S>
typename S::Floats exp_of(typename S::Floats x) noexcept {
  const Reduced<S> reduced(S::max(S::min(x, S::set(89.0f)), S::set(-104.0f)));
  auto p = S::fma(reduced.series(), reduced.r, S::set(1.0f));
  p = S::fma(p, reduced.r, S::set(1.0f));
  const auto half = S::halve(reduced.n);
  const auto scaled =
      S::mul(S::mul(p, S::power_of_two(half)), S::power_of_two(S::sub_ints(reduced.n, half)));
  return S::or_nan(scaled, x);
}

template <class S>
void exp(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n, [](auto v) noexcept { return exp_of<S>(v); });
}

template <class S>
float exp_sum(float* x, float shift, std::size_t n) noexcept {
  const typename S::Floats offset = S::set(shift);
  typename S::Floats acc = S::set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto e = exp_of<S>(S::sub(S::load(x + i), offset));
    S::store(e, x + i);
    acc = S::add(acc, e);
  }
  if (i < n) {
    const auto e = exp_of<S>(S::sub(load_tail<S>(x + i, n - i, 0.0f), offset));
    store_tail<S>(e, x + i, n - i);
    acc = S::add(acc, load_tail<S>(x + i, n - i, 0.0f));  // without the lanes past the end
  }
  return S::reduce_add(acc);
}

// e^x - 1 for |x| <= 40, without the cancellation near 0: 2^n (e^r - 1) + (2^n - 1), where the
// series of e^r - 1 begins with r and n is 0 for small x.
template <class S>
typename S::Floats expm1_of(typename S::Floats x) noexcept {
  const Reduced<S> reduced(x);
  const auto p = S::fma(S::mul(reduced.series(), reduced.r), reduced.r, reduced.r);
  const auto power = S::power_of_two(reduced.n);
  return S::fma(power, p, S::sub(power, S::set(1.0f)));
}

// tanh(x) = m / (m + 2), m = e^2x - 1; beyond 10 the result is 1 in f32.
template <class S>
typename S::Floats tanh_of(typename S::Floats x) noexcept {
  const auto clamped = S::max(S::min(x, S::set(10.0f)), S::set(-10.0f));
  const auto m = expm1_of<S>(S::add(clamped, clamped));
  return S::or_nan(S::div(m, S::add(m, S::set(2.0f))), x);
}

template <class S>
void tanh(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n, [](auto v) noexcept { return tanh_of<S>(v); });
}

template <class S>
void soft_cap(float cap, const float* x, float* y, std::size_t n) noexcept {
  const typename S::Floats limit = S::set(cap);
  map<S>(x, y, n, [limit](auto v) noexcept { return S::mul(limit, tanh_of<S>(S::div(v, limit))); });
}

template <class S>
void shift(float a, const float* x, float* y, std::size_t n) noexcept {
  const typename S::Floats offset = S::set(a);
  map<S>(x, y, n, [offset](auto v) noexcept { return S::add(v, offset); });
}

template <class S>
void relu(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n, [](auto v) noexcept { return S::or_nan(S::max(v, S::set(0.0f)), v); });
}

// x * sigmoid(t) = x / (1 + e^-t)
template <class S>
typename S::Floats times_sigmoid(typename S::Floats x, typename S::Floats minus_t) noexcept {
  return S::div(x, S::add(S::set(1.0f), exp_of<S>(minus_t)));
}

template <class S>
void sigmoid(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n,
         [](auto v) noexcept { return times_sigmoid<S>(S::set(1.0f), S::sub(S::set(0.0f), v)); });
}

template <class S>
typename S::Floats silu_of(typename S::Floats x) noexcept {
  return times_sigmoid<S>(x, S::sub(S::set(0.0f), x));
}

template <class S>
void silu(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n, [](auto v) noexcept { return silu_of<S>(v); });
}

template <class S>
void swiglu(const float* gate, const float* up, float* z, std::size_t n) noexcept {
  map<S>(gate, up, z, n, [](auto g, auto u) noexcept { return S::mul(silu_of<S>(g), u); });
}

// 0.5 x (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3). The sigmoid form
// needs one exp and loses nothing for negative x, where 1 + tanh cancels.
template <class S>
typename S::Floats gelu_of(typename S::Floats x) noexcept {
  const auto square = S::mul(x, x);
  const auto inner = S::fma(square, S::set(0.044715f), S::set(1.0f));
  return times_sigmoid<S>(x, S::mul(S::mul(x, S::set(-1.59576912160573f)), inner));
}

template <class S>
void gelu(const float* x, float* y, std::size_t n) noexcept {
  map<S>(x, y, n, [](auto v) noexcept { return gelu_of<S>(v); });
}

template <class S>
void geglu(const float* gate, const float* up, float* z, std::size_t n) noexcept {
  map<S>(gate, up, z, n, [](auto g, auto u) noexcept { return S::mul(gelu_of<S>(g), u); });
}

template <class S>
void rms_norm(const float* x, const float* weight, float epsilon, float* y,
              std::size_t n) noexcept {
  const float mean = sum_squares<S>(x, n) / static_cast<float>(n);
  const auto inverse = S::set(1.0f / __builtin_sqrtf(mean + epsilon));
  map<S>(x, weight, y, n,
         [inverse](auto v, auto w) noexcept { return S::mul(S::mul(v, inverse), w); });
}

// The variance is summed from the deviations, not as a difference of two large sums.
template <class S>
void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                std::size_t n) noexcept {
  const float mean = sum<S>(x, n) / static_cast<float>(n);
  const auto middle = S::set(mean);
  typename S::Floats acc = S::set(0.0f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto deviation = S::sub(S::load(x + i), middle);
    acc = S::fma(deviation, deviation, acc);
  }
  if (i < n) {
    const auto deviation = S::sub(load_tail<S>(x + i, n - i, mean), middle);
    acc = S::fma(deviation, deviation, acc);
  }
  const float variance = S::reduce_add(acc) / static_cast<float>(n);
  const auto inverse = S::set(1.0f / __builtin_sqrtf(variance + epsilon));
  map<S>(x, weight, y, n, [middle, inverse](auto v, auto w) noexcept {
    return S::mul(S::mul(S::sub(v, middle), inverse), w);
  });
  if (bias != nullptr) add<S>(y, bias, y, n);
}

// Sums and differences alone: any vector width gives the bits of one by one.
template <class S>
void hadamard(float factor, float* x, std::size_t n) noexcept {
  for (std::size_t apart = n / 2; apart != 0; apart /= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * apart) {
      float* const low = x + begin;
      float* const high = low + apart;
      std::size_t i = 0;
      for (; i + kLanes <= apart; i += kLanes) {
        const auto a = S::load(low + i);
        const auto b = S::load(high + i);
        S::store(S::add(a, b), low + i);
        S::store(S::sub(a, b), high + i);
      }
      for (; i < apart; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
  scale<S>(factor, x, x, n);
}

template <class S>
void f32_to_f16(const float* x, std::uint16_t* y, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store_f16(S::load(x + i), y + i);
  if (i < n) {
    std::uint16_t lane[kLanes];
    S::store_f16(load_tail<S>(x + i, n - i, 0.0f), lane);
    for (std::size_t j = 0; i + j < n; ++j) y[i + j] = lane[j];
  }
}

template <class S>
void f16_to_f32(const std::uint16_t* x, float* y, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(S::load_f16(x + i), y + i);
  if (i < n) {
    const HalfTail tail(x + i, n - i);
    store_tail<S>(S::load_f16(tail.lane), y + i, n - i);
  }
}

template <class S>
void bf16_to_f32(const std::uint16_t* x, float* y, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(S::load_bf16(x + i), y + i);
  if (i < n) {
    const HalfTail tail(x + i, n - i);
    store_tail<S>(S::load_bf16(tail.lane), y + i, n - i);
  }
}

template <class S>
void q8_0_to_f32(const std::byte* blocks, float* y, std::size_t n) noexcept {
  for (std::size_t begin = 0; begin < n; begin += 2 * kLanes, blocks += 2 + 2 * kLanes) {
    std::uint16_t scale;
    std::int8_t quants[2 * kLanes];
    __builtin_memcpy(&scale, blocks, sizeof scale);
    __builtin_memcpy(quants, blocks + 2, sizeof quants);
    const auto d = S::set_f16(scale);
    for (std::size_t i = 0; i < 2 * kLanes; i += kLanes) {
      S::store(S::mul(S::to_float(S::load_i8(quants + i)), d), y + begin + i);
    }
  }
}

// The bits of |x|, read as an integer, order all finite values below infinity and infinity below
// NaN, so one maximum answers both "how large" and "is anything wrong". A block whose inverse scale
// would overflow (all magnitudes below 4e-37) is a block of zeros.
template <class S>
void quantize_activations(const float* x, std::size_t n, std::size_t block, std::int8_t* q,
                          std::int16_t* sums, float* scale) noexcept {
  constexpr std::int32_t kInfinityBits = 0x7f800000;
  for (std::size_t begin = 0; begin < n; begin += block, ++scale) {
    typename S::Ints bits = S::abs_bits(S::load(x + begin));
    for (std::size_t i = kLanes; i < block; i += kLanes) {
      bits = S::max_ints(bits, S::abs_bits(S::load(x + begin + i)));
    }
    const std::int32_t amax_bits = S::reduce_max_ints(bits);
    float amax;
    __builtin_memcpy(&amax, &amax_bits, sizeof amax);
    const float inverse = 127.0f / amax;
    const bool bad = amax_bits >= kInfinityBits;
    const bool zero = !bad && !(inverse <= 3.4028235e38f);
    *scale = bad ? __builtin_nanf("") : zero ? 0.0f : amax / 127.0f;
    if (bad || zero) {
      for (std::size_t i = 0; i < block; ++i) q[begin + i] = 0;
      for (std::size_t i = 0; i < block; i += kLanes) sums[(begin + i) / kLanes] = 0;
      continue;
    }
    const typename S::Floats factor = S::set(inverse);
    for (std::size_t i = begin; i < begin + block; i += kLanes) {
      const typename S::Ints rounded = S::round(S::mul(S::load(x + i), factor));
      S::store_i8(rounded, q + i);
      sums[i / kLanes] = static_cast<std::int16_t>(S::reduce_add_ints(rounded));
    }
  }
}

template <class S>
constexpr RowKernels make_row_kernels() noexcept {
  return {.dot_f32 = dot<S, float>,
          .dot_f16 = dot<S, std::uint16_t>,
          .dot_rows_f32 = dot_rows<S, float>,
          .dot_rows_f16 = dot_rows<S, std::uint16_t>,
          .axpy_f32 = axpy<S, float>,
          .axpy_f16 = axpy<S, std::uint16_t>,
          .axpy_rows_f32 = axpy_rows<S, float>,
          .axpy_rows_f16 = axpy_rows<S, std::uint16_t>,
          .transpose16 = transpose16<S>,
          .dot_tile = dot_tile<S>,
          .axpy_tile = axpy_tile<S>,
          .sum = sum<S>,
          .sum_squares = sum_squares<S>,
          .max = max<S>,
          .scale = scale<S>,
          .add = add<S>,
          .mul = mul<S>,
          .exp = exp<S>,
          .exp_sum = exp_sum<S>,
          .relu = relu<S>,
          .sigmoid = sigmoid<S>,
          .tanh = tanh<S>,
          .silu = silu<S>,
          .gelu = gelu<S>,
          .swiglu = swiglu<S>,
          .geglu = geglu<S>,
          .shift = shift<S>,
          .soft_cap = soft_cap<S>,
          .rms_norm = rms_norm<S>,
          .layer_norm = layer_norm<S>,
          .hadamard = hadamard<S>,
          .f32_to_f16 = f32_to_f16<S>,
          .f16_to_f32 = f16_to_f32<S>,
          .bf16_to_f32 = bf16_to_f32<S>,
          .q8_0_to_f32 = q8_0_to_f32<S>,
          .quantize_activations = quantize_activations<S>};
}

}  // namespace
}  // namespace lockstep::quant
