// Arithmetic on rows of f32: the building stones of every op that is not a quantized matmul.
//
// One table of functions per instruction set, all made from the same source (row_kernels.inl.h)
// over a 16-lane vector type, so that every instruction set returns the same bits. Reductions use
// one order: lane j takes the elements with i % 16 == j, in order, with fma; the 16 lanes are then
// added in a fixed tree 16-8-4-2-1. Pointers need no alignment; n may be anything, zero included.
// All noexcept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace lockstep::quant {

struct RowKernels {
  // sum x[i] * y[i]
  float (*dot_f32)(const float* x, const float* y, std::size_t n) noexcept;
  float (*dot_f16)(const float* x, const std::uint16_t* y, std::size_t n) noexcept;
  // dots[j] = dot of x and row j, for `count` rows of n values, `stride` values from one to the
  // next; the bits of dot_f32 and dot_f16
  void (*dot_rows_f32)(const float* x, const float* rows, std::size_t stride, std::size_t count,
                       std::size_t n, float* dots) noexcept;
  void (*dot_rows_f16)(const float* x, const std::uint16_t* rows, std::size_t stride,
                       std::size_t count, std::size_t n, float* dots) noexcept;
  // y[i] = fma(a, x[i], y[i])
  void (*axpy_f32)(float a, const float* x, float* y, std::size_t n) noexcept;
  void (*axpy_f16)(float a, const std::uint16_t* x, float* y, std::size_t n) noexcept;
  // The same with factors[j] and row j, for j = 0, 1, ... count - 1 in this order
  void (*axpy_rows_f32)(const float* factors, const float* rows, std::size_t stride,
                        std::size_t count, std::size_t n, float* y) noexcept;
  void (*axpy_rows_f16)(const float* factors, const std::uint16_t* rows, std::size_t stride,
                        std::size_t count, std::size_t n, float* y) noexcept;
  // Tiles, for many x at once. columns[i * 16 + j] = rows[j * stride + i], j < 16, i < n; then
  // dots[q * dot_stride + j] = factor * dot_f32(x[q], row j) for those 16 rows, and
  // axpy_rows_f32(factors + q * factor_stride, rows, ..., y[q]) for every q. n is a multiple of 16;
  // the bits are those of the functions named.
  void (*transpose16)(const float* rows, std::size_t stride, std::size_t n,
                      float* columns) noexcept;
  void (*dot_tile)(const float* const* x, std::size_t queries, const float* columns, std::size_t n,
                   float factor, float* dots, std::size_t dot_stride) noexcept;
  void (*axpy_tile)(const float* factors, std::size_t factor_stride, std::size_t queries,
                    const float* rows, std::size_t stride, std::size_t count, std::size_t n,
                    float* const* y) noexcept;
  // sum x[i] ; sum x[i]^2 ; max x[i] (-inf for n == 0; NaN is ignored)
  float (*sum)(const float* x, std::size_t n) noexcept;
  float (*sum_squares)(const float* x, std::size_t n) noexcept;
  float (*max)(const float* x, std::size_t n) noexcept;
  // y[i] = x[i] * a ; z = x + y ; z = x * y (z may be x or y)
  void (*scale)(float a, const float* x, float* y, std::size_t n) noexcept;
  void (*add)(const float* x, const float* y, float* z, std::size_t n) noexcept;
  void (*mul)(const float* x, const float* y, float* z, std::size_t n) noexcept;
  // y[i] = exp(x[i]): below 2 ulp from float64, -inf gives 0, overflow gives +inf, NaN stays NaN.
  void (*exp)(const float* x, float* y, std::size_t n) noexcept;
  // x[i] = exp(x[i] - shift) in place; returns the sum.
  float (*exp_sum)(float* x, float shift, std::size_t n) noexcept;
  // y = max(x, 0) ; 1 / (1 + exp(-x)) ; tanh(x), below 4 ulp from float64 ; x * sigmoid(x) ; gelu
  // is the tanh form. NaN stays NaN.
  void (*relu)(const float* x, float* y, std::size_t n) noexcept;
  void (*sigmoid)(const float* x, float* y, std::size_t n) noexcept;
  void (*tanh)(const float* x, float* y, std::size_t n) noexcept;
  void (*silu)(const float* x, float* y, std::size_t n) noexcept;
  void (*gelu)(const float* x, float* y, std::size_t n) noexcept;
  // z = silu(gate) * up ; z = gelu(gate) * up
  void (*swiglu)(const float* gate, const float* up, float* z, std::size_t n) noexcept;
  void (*geglu)(const float* gate, const float* up, float* z, std::size_t n) noexcept;
  // y[i] = x[i] + a ; y[i] = cap * tanh(x[i] / cap)
  void (*shift)(float a, const float* x, float* y, std::size_t n) noexcept;
  void (*soft_cap)(float cap, const float* x, float* y, std::size_t n) noexcept;
  // y[i] = (x[i] * inverse_rms) * weight[i], inverse_rms = 1 / sqrt(sum_squares / n + epsilon)
  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* y,
                   std::size_t n) noexcept;
  // y[i] = (x[i] - mean) * inverse * weight[i] + bias[i], mean = sum / n,
  // inverse = 1 / sqrt(sum (x - mean)^2 / n + epsilon); without the last term if bias is null
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon,
                     float* y, std::size_t n) noexcept;
  // In place y = factor * H x with the Hadamard matrix in Sylvester's order, H[i][j] = -1 to the
  // number of ones in i & j: butterflies at distance n / 2, n / 4, ... 1. n is a power of two.
  void (*hadamard)(float factor, float* x, std::size_t n) noexcept;
  // Round to nearest even; overflow gives infinity; NaN stays NaN (quiet).
  void (*f32_to_f16)(const float* x, std::uint16_t* y, std::size_t n) noexcept;
  void (*f16_to_f32)(const std::uint16_t* x, float* y, std::size_t n) noexcept;
  void (*bf16_to_f32)(const std::uint16_t* x, float* y, std::size_t n) noexcept;
  // Blocks of formats/q8_0.h as f32; n is a multiple of 32.
  void (*q8_0_to_f32)(const std::byte* blocks, float* y, std::size_t n) noexcept;
  // Quantizes n values (a multiple of `block`, which is 32 or 256) into an activation row laid out
  // by ActivationLayout: per block scale = amax / 127, q = nearest-even(x / scale). A block with a
  // NaN or infinity gets scale NaN and zeros, so that the damage stays in this row.
  void (*quantize_activations)(const float* x, std::size_t n, std::size_t block, std::int8_t* q,
                               std::int16_t* sums, float* scale) noexcept;
};

}  // namespace lockstep::quant
