// The search of q4x_search.h over 16 lanes: S is the vector type of row_kernels.inl.h and of the
// other encoders.
//
// All four codebooks, both signs and every scale in a window are tried. The window goes by the
// largest value that the codebook must reach: below 0.6 of the scale that reaches it too much is
// cut off, above 1.25 of it levels lie idle.
#pragma once

#include "quant/q4x_search.h"

namespace lockstep::quant::q4x {
namespace {

constexpr float kWindowLow = 0.6f;
constexpr float kWindowHigh = 1.25f;
constexpr std::size_t kHalf = 16;  // lanes

template <class S>
struct GroupOf32 {
  typename S::Floats x[2], w[2];
};

template <class S>
float squared_error(const GroupOf32<S>& group, const SearchTables& tables, std::size_t book,
                    float scale) noexcept {
  const auto inverse = S::set(1.0f / scale);
  const typename S::Floats y[2] = {S::mul(group.x[0], inverse), S::mul(group.x[1], inverse)};
  typename S::Floats level[2] = {S::set(tables.level[book][0]), S::set(tables.level[book][0])};
  for (std::size_t i = 0; i < 15; ++i) {
    const auto threshold = S::set(tables.threshold[book][i]);
    const auto next = S::set(tables.level[book][i + 1]);
    level[0] = S::select_less(threshold, y[0], next, level[0]);
    level[1] = S::select_less(threshold, y[1], next, level[1]);
  }
  const auto minus_scale = S::set(-scale);
  const auto d0 = S::fma(minus_scale, level[0], group.x[0]);
  const auto d1 = S::fma(minus_scale, level[1], group.x[1]);
  return S::reduce_add(S::fma(S::mul(d0, d0), group.w[0], S::mul(S::mul(d1, d1), group.w[1])));
}

template <class S>
void store_indices(const GroupOf32<S>& group, const SearchTables& tables, Choice& choice) noexcept {
  const auto inverse = S::set(1.0f / choice.scale);
  for (std::size_t half = 0; half < 2; ++half) {
    const auto y = S::mul(group.x[half], inverse);
    auto index = S::set(0.0f);
    for (std::size_t i = 0; i < 15; ++i) {
      const auto threshold = S::set(tables.threshold[choice.book][i]);
      index = S::select_less(threshold, y, S::set(static_cast<float>(i + 1)), index);
    }
    S::store_i8(S::round(index), choice.index + half * kHalf);
  }
}

// The codes [begin, end) whose scales lie in the window around `reach`; at least one code.
struct Window {
  std::size_t begin, end;
  Window(const SearchTables& tables, float reach) noexcept : begin(1), end(64) {
    while (begin < 63 && tables.scale[begin] < kWindowLow * reach) ++begin;
    while (end > begin + 1 && tables.scale[end - 1] > kWindowHigh * reach) --end;
  }
};

template <class S>
void search_group(const SearchTables& tables, const float* values, const float* weights,
                  Choice& choice) noexcept {
  const GroupOf32<S> group{{S::load(values), S::load(values + kHalf)},
                           {S::load(weights), S::load(weights + kHalf)}};
  const auto zero = S::set(0.0f);
  const float top = S::reduce_max(S::max(group.x[0], group.x[1]));
  const float bottom = S::reduce_max(S::max(S::sub(zero, group.x[0]), S::sub(zero, group.x[1])));
  choice = {};
  choice.error = S::reduce_add(S::fma(S::mul(group.x[0], group.x[0]), group.w[0],
                                      S::mul(S::mul(group.x[1], group.x[1]), group.w[1])));
  for (std::uint8_t book = 0; book < 4; ++book) {
    // One over the outermost levels, so that a codebook of one sign reaches no further than it can.
    const float upper = tables.level[book][15] > 0.0f ? 1.0f / tables.level[book][15] : 0.0f;
    const float lower = tables.level[book][0] < 0.0f ? -1.0f / tables.level[book][0] : 0.0f;
    for (std::uint8_t sign = 0; sign < 2; ++sign) {
      const float above = (sign == 0 ? top : bottom) * upper;
      const float below = (sign == 0 ? bottom : top) * lower;
      const Window window(tables, above > below ? above : below);
      for (std::size_t code = window.begin; code < window.end; ++code) {
        const float scale = sign == 0 ? tables.scale[code] : -tables.scale[code];
        const float error = squared_error<S>(group, tables, book, scale);
        if (error < choice.error) {
          choice.error = error;
          choice.scale = scale;
          choice.code = static_cast<std::uint8_t>(code);
          choice.sign = sign;
          choice.book = book;
        }
      }
    }
  }
  if (choice.code != 0) store_indices<S>(group, tables, choice);
}

template <class S>
void search_groups(const SearchTables& tables, const float* values, const float* weights,
                   std::size_t groups, Choice* choices) noexcept {
  for (std::size_t g = 0; g < groups; ++g) {
    search_group<S>(tables, values + g * 32, weights + g * 32, choices[g]);
  }
}

}  // namespace
}  // namespace lockstep::quant::q4x
