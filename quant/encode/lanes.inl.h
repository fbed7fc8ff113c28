// Building blocks of the encoders' search for scales: sixteen groups of weights side by side, one
// group per lane.
//
// A search tries many scales for every group and keeps the best. With one group per lane a trial
// is a loop over the values of a group without any horizontal sum, sixteen groups at once, and
// every lane does the same operations in the same order whatever its neighbours hold: the bytes
// are a function of the values alone, equal on every instruction set. No fma is used, since
// emulating one where the processor has none would be most of the scalar time. Everything here is
// in an anonymous namespace, as in row_kernels.inl.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::quant {
namespace {

// The loops over the values of a group are functions of their own: inlined into every search they
// would be most of the compile time, the more so with sanitizers.
#define LOCKSTEP_GROUP_LOOP [[gnu::noinline]]

inline constexpr int kLanes = 16;
inline constexpr float kInfinity = __builtin_inff();

// The nearest integer, ties to even, for |v| < 2^22.
template <class S>
typename S::Floats nearest_integer(typename S::Floats v) noexcept {
  const auto rounder = S::set(12582912.0f);  // 1.5 * 2^23 leaves no fraction bits
  return S::sub(S::add(v, rounder), rounder);
}

template <class S>
typename S::Floats magnitude(typename S::Floats v) noexcept {
  return S::max(v, S::sub(S::set(0.0f), v));
}

// 1 / v, or 0 where that is no finite number.
template <class S>
typename S::Floats inverse_of(typename S::Floats v) noexcept {
  const auto inverse = S::div(S::set(1.0f), v);
  return S::select_less(magnitude<S>(inverse), S::set(kInfinity), inverse, S::set(0.0f));
}

// The values as an f16 keeps them.
template <class S>
typename S::Floats as_f16(typename S::Floats v) noexcept {
  std::uint16_t half[kLanes];
  S::store_f16(v, half);
  return S::load_f16(half);
}

// The levels that a quantized value can take, in units of its scale: all integers of a range.
template <int kLowest, int kHighest>
struct Uniform {
  static constexpr float kLow = static_cast<float>(kLowest);
  static constexpr float kHigh = static_cast<float>(kHighest);

  // The level nearest to v; the lowest one if v is NaN.
  template <class S>
  static typename S::Floats nearest(typename S::Floats v) noexcept {
    return nearest_integer<S>(S::min(S::max(v, S::set(kLow)), S::set(kHigh)));
  }
  // The number that is stored for it.
  template <class S>
  static typename S::Ints code(typename S::Floats v) noexcept {
    return S::round(nearest<S>(v));
  }
};

// Sixteen levels in ascending order, found by four comparisons: each halves what is left.
struct Codebook {
  float mid1 = 0;       // between the lower and the upper eight levels
  float mid2[8] = {};   // of each eight (2 entries used)
  float mid4[8] = {};   // of each four (4 used)
  float mid8[8] = {};   // of each two
  float lower[8] = {};  // the lower level of each two
  float gap[8] = {};    // and how far above it the other one is

  constexpr explicit Codebook(const std::int8_t (&levels)[16]) noexcept {
    const auto mid = [&](int k) noexcept {
      return 0.5f * static_cast<float>(levels[k] + levels[k + 1]);
    };
    mid1 = mid(7);
    for (int i = 0; i < 2; ++i) mid2[i] = mid(8 * i + 3);
    for (int i = 0; i < 4; ++i) mid4[i] = mid(4 * i + 1);
    for (int i = 0; i < 8; ++i) {
      mid8[i] = mid(2 * i);
      lower[i] = static_cast<float>(levels[2 * i]);
      gap[i] = static_cast<float>(levels[2 * i + 1] - levels[2 * i]);
    }
  }
};

// The levels of a codebook; a code is the position among them.
template <const Codebook& kBook>
struct BookLevels {
  static constexpr float kLow = kBook.lower[0];
  static constexpr float kHigh = kBook.lower[7] + kBook.gap[7];

  // Which of the eight pairs of levels v belongs to.
  template <class S>
  static typename S::Ints pair(typename S::Floats v) noexcept {
    const auto zero = S::less(v, v);
    auto i = S::sub_ints(zero, S::less(S::set(kBook.mid1), v));
    i = S::sub_ints(S::add_ints(i, i), S::less(S::lookup8(kBook.mid2, i), v));
    return S::sub_ints(S::add_ints(i, i), S::less(S::lookup8(kBook.mid4, i), v));
  }
  template <class S>
  static typename S::Floats nearest(typename S::Floats v) noexcept {
    const auto i = pair<S>(v);
    const auto step = S::lookup8(kBook.gap, i);
    return S::add(S::lookup8(kBook.lower, i),
                  S::select_less(S::lookup8(kBook.mid8, i), v, step, S::set(0.0f)));
  }
  template <class S>
  static typename S::Ints code(typename S::Floats v) noexcept {
    const auto i = pair<S>(v);
    return S::sub_ints(S::add_ints(i, i), S::less(S::lookup8(kBook.mid8, i), v));
  }
};

// Above this no format can represent a value, and squares are far from overflow below it.
inline constexpr float kLargest = 0x1p40f;
// Importance counts relative to the largest of a block; below this share a value only follows.
inline constexpr float kLeastWeight = 0x1p-20f;

// Up to sixteen consecutive groups of a row, value by value: lane j holds group j. A block of
// kBlock groups with a NaN, an infinity or a value beyond kLargest is marked bad and taken as
// zeros; so are the lanes past the end of the row.
template <class Simd, int kGroup, bool kHasWeights>
struct Groups {
  using S = Simd;
  using Floats = typename S::Floats;
  static constexpr int kValues = kGroup;
  static constexpr bool kWeighted = kHasWeights;

  float x[kGroup * kLanes];
  float w[kWeighted ? kGroup * kLanes : 1];
  bool bad[kLanes];

  Floats value(int i) const noexcept { return S::load(x + i * kLanes); }
  Floats weight(int i) const noexcept { return S::load(w + i * kLanes); }
  // term, counted by the importance of value i.
  Floats weigh(int i, Floats term) const noexcept {
    if constexpr (kWeighted) {
      return S::mul(weight(i), term);
    } else {
      return term;
    }
  }

  LOCKSTEP_GROUP_LOOP void load(const float* values, const float* importance, int groups,
                                int block_groups, float largest = kLargest) noexcept {
    for (int first = 0; first < kLanes; first += block_groups) {
      const bool there = first < groups;
      const float* from = values + first * kGroup;
      bool good = there;
      for (int i = 0; there && i < block_groups * kGroup; ++i) {
        good = good && __builtin_fabsf(from[i]) <= largest;
      }
      bad[first / block_groups] = there && !good;
      for (int j = 0; j < block_groups; ++j) {
        for (int i = 0; i < kGroup; ++i) {
          x[i * kLanes + first + j] = good ? from[j * kGroup + i] : 0.0f;
        }
      }
      if constexpr (kWeighted) {
        load_weights(good ? importance + first * kGroup : nullptr, first, block_groups);
      }
    }
  }

 private:
  void load_weights(const float* importance, int first, int block_groups) noexcept {
    float most = 0;
    for (int i = 0; importance != nullptr && i < block_groups * kGroup; ++i) {
      most = importance[i] > most ? importance[i] : most;
    }
    // No importance at all, or none that can be compared: all values count alike.
    const bool usable = most > 0x1p-100f && most < kInfinity;
    for (int j = 0; j < block_groups; ++j) {
      for (int i = 0; i < kGroup; ++i) {
        const float share = usable ? importance[j * kGroup + i] / most : 1.0f;
        w[i * kLanes + first + j] = share > kLeastWeight ? share : kLeastWeight;
      }
    }
  }
};

// Sum of w * x * q and of w * q * q with q the level nearest to x * inverse.
template <class S>
struct ScaleSums {
  typename S::Floats xq, qq;
};

template <class Levels, class G>
LOCKSTEP_GROUP_LOOP ScaleSums<typename G::S> scale_sums(const G& g,
                                                        typename G::Floats inverse) noexcept {
  using S = typename G::S;
  auto xq = S::set(0.0f);
  auto qq = xq;
  for (int i = 0; i < G::kValues; ++i) {
    const auto x = g.value(i);
    const auto q = Levels::template nearest<S>(S::mul(x, inverse));
    const auto wq = g.weigh(i, q);
    xq = S::add(xq, S::mul(wq, x));
    qq = S::add(qq, S::mul(wq, q));
  }
  return {xq, qq};
}

// Squared error of the groups with this scale, each value at its nearest level.
template <class Levels, class G>
LOCKSTEP_GROUP_LOOP typename G::Floats scale_error(const G& g, typename G::Floats scale) noexcept {
  using S = typename G::S;
  const auto inverse = inverse_of<S>(scale);
  auto error = S::set(0.0f);
  for (int i = 0; i < G::kValues; ++i) {
    const auto x = g.value(i);
    const auto q = Levels::template nearest<S>(S::mul(x, inverse));
    const auto off = S::sub(x, S::mul(scale, q));
    error = S::add(error, g.weigh(i, S::mul(off, off)));
  }
  return error;
}

// The stored numbers of x + min in units of scale: q[i * kLanes + lane]. Divides where the searches
// multiply by the inverse, so that what is halfway is not moved by rounding twice.
template <class Levels, class G>
LOCKSTEP_GROUP_LOOP void write_codes(const G& g, typename G::Floats scale, typename G::Floats min,
                                     std::int8_t* q) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  const auto inverse = magnitude<S>(inverse_of<S>(scale));
  for (int i = 0; i < G::kValues; ++i) {
    const auto v = S::div(S::add(g.value(i), min), scale);
    S::store_i8(Levels::template code<S>(S::select_less(zero, inverse, v, zero)), q + i * kLanes);
  }
}

}  // namespace
}  // namespace lockstep::quant
