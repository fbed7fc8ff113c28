// The tiles of rows.h: many queries against the same rows of a cache, in registers. Part of
// row_kernels.inl.h, which includes this and says what S is; the bits are those of its dot() and
// axpy_rows(), one row at a time.
#pragma once

#include <cstddef>

namespace lockstep::quant {
namespace {

inline constexpr std::size_t kLanes = 16;

template <class S>
void transpose16(const float* rows, std::size_t stride, std::size_t n, float* columns) noexcept {
  for (std::size_t i = 0; i < n; i += kLanes)
    S::transpose16(rows + i, stride, columns + i * kLanes);
}

template <class S, int kQueries>
struct QueryFloats {
  typename S::Floats of[kQueries];

  friend QueryFloats operator+(const QueryFloats& a, const QueryFloats& b) noexcept {
    QueryFloats sum;
    for (int q = 0; q < kQueries; ++q) sum.of[q] = S::add(a.of[q], b.of[q]);
    return sum;
  }
};

// The tree of reduce_add with a row in every lane: what a vector holds in its lanes kLane, kLane +
// kStep, kLane + 2 kStep, ... is here a chain of its own, and adding two lanes is adding two
// chains. So no sum goes across lanes, which for short rows would cost as much as the products.
template <class S, int kQueries, int kStep>
[[gnu::always_inline]] inline QueryFloats<S, kQueries> dot_lanes(const float* const (&x)[kQueries],
                                                                 const float* columns,
                                                                 std::size_t n, int lane) noexcept {
  if constexpr (kStep < 8) {
    const auto first = dot_lanes<S, kQueries, 2 * kStep>(x, columns, n, lane);
    return first + dot_lanes<S, kQueries, 2 * kStep>(x, columns, n, lane + kStep);
  } else {
    QueryFloats<S, kQueries> low, high;
    for (int q = 0; q < kQueries; ++q) low.of[q] = high.of[q] = S::set(0.0f);
    for (std::size_t i = static_cast<std::size_t>(lane); i < n; i += kLanes) {
      const auto near = S::load(columns + i * kLanes);
      const auto far = S::load(columns + (i + kStep) * kLanes);
      for (int q = 0; q < kQueries; ++q) {
        low.of[q] = S::fma(S::set(x[q][i]), near, low.of[q]);
        high.of[q] = S::fma(S::set(x[q][i + kStep]), far, high.of[q]);
      }
    }
    return low + high;
  }
}

template <class S, int kQueries>
void dot_tile_part(const float* const* x, const float* columns, std::size_t n, float factor,
                   float* dots, std::size_t dot_stride) noexcept {
  const float* query[kQueries];
  for (int q = 0; q < kQueries; ++q) query[q] = x[q];
  const auto sums = dot_lanes<S, kQueries, 1>(query, columns, n, 0);
  for (int q = 0; q < kQueries; ++q, dots += dot_stride) {
    S::store(S::mul(sums.of[q], S::set(factor)), dots);
  }
}

template <class S>
void dot_tile(const float* const* x, std::size_t queries, const float* columns, std::size_t n,
              float factor, float* dots, std::size_t dot_stride) noexcept {
  constexpr int kQueries = S::kRegisters >= 16 ? 4 : 2;
  std::size_t q = 0;
  for (; q + kQueries <= queries; q += kQueries) {
    dot_tile_part<S, kQueries>(x + q, columns, n, factor, dots + q * dot_stride, dot_stride);
  }
  for (; q < queries; ++q) {
    dot_tile_part<S, 1>(x + q, columns, n, factor, dots + q * dot_stride, dot_stride);
  }
}

// One vector of every y stays in registers while all rows go by.
template <class S, int kQueries>
void axpy_tile_part(const float* factors, std::size_t factor_stride, const float* rows,
                    std::size_t stride, std::size_t count, std::size_t n,
                    float* const* y) noexcept {
  for (std::size_t i = 0; i < n; i += kLanes) {
    typename S::Floats acc[kQueries];
    for (int q = 0; q < kQueries; ++q) acc[q] = S::load(y[q] + i);
    for (std::size_t j = 0; j < count; ++j) {
      const auto value = S::load(rows + j * stride + i);
      for (int q = 0; q < kQueries; ++q) {
        const float factor = factors[static_cast<std::size_t>(q) * factor_stride + j];
        acc[q] = S::fma(S::set(factor), value, acc[q]);
      }
    }
    for (int q = 0; q < kQueries; ++q) S::store(acc[q], y[q] + i);
  }
}

template <class S, class T>
void axpy_rows(const float* factors, const T* rows, std::size_t stride, std::size_t count,
               std::size_t n, float* y) noexcept;

template <class S>
void axpy_tile(const float* factors, std::size_t factor_stride, std::size_t queries,
               const float* rows, std::size_t stride, std::size_t count, std::size_t n,
               float* const* y) noexcept {
  constexpr int kQueries = S::kRegisters >= 16 ? 8 : 4;
  std::size_t q = 0;
  for (; q + kQueries <= queries; q += kQueries) {
    axpy_tile_part<S, kQueries>(factors + q * factor_stride, factor_stride, rows, stride, count, n,
                                y + q);
  }
  for (; q < queries; ++q) {
    axpy_rows<S>(factors + q * factor_stride, rows, stride, count, n, y[q]);
  }
}

}  // namespace
}  // namespace lockstep::quant
