// Encoders for values of the form scale * q - min with q >= 0: a scale and a minimum per group,
// stored by themselves or as integer multiples of two f16 of a block.
//
// As in scaled.inl.h the groups are searched alone first, then the block. Rounding a group's scale
// to a multiple of d moves its best minimum too; candidates of d are therefore ranked by the error
// that is left after the minimum has followed, and each is tried with the minima that follow.
#pragma once

#include "quant/encode/scaled.inl.h"

namespace lockstep::quant {
namespace {

// Sums of w, w * x, w * q, w * q^2, w * x * q for the levels q nearest to (x + min) * inverse.
template <class S>
struct AffineSums {
  typename S::Floats w, x, q, qq, xq;
};

template <class S>
struct Totals {
  typename S::Floats w, x, xx;
};

template <class G>
LOCKSTEP_GROUP_LOOP Totals<typename G::S> totals_of(const G& g) noexcept {
  using S = typename G::S;
  Totals<S> total{S::set(static_cast<float>(G::kValues)), S::set(0.0f), S::set(0.0f)};
  if constexpr (G::kWeighted) total.w = S::set(0.0f);
  for (int i = 0; i < G::kValues; ++i) {
    if constexpr (G::kWeighted) total.w = S::add(total.w, g.weight(i));
    const auto wx = g.weigh(i, g.value(i));
    total.x = S::add(total.x, wx);
    total.xx = S::add(total.xx, S::mul(wx, g.value(i)));
  }
  return total;
}

template <int kHighest, class G>
LOCKSTEP_GROUP_LOOP AffineSums<typename G::S> affine_sums(const G& g,
                                                          const Totals<typename G::S>& total,
                                                          typename G::Floats inverse,
                                                          typename G::Floats min) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  AffineSums<S> sums{total.w, total.x, zero, zero, zero};
  for (int i = 0; i < G::kValues; ++i) {
    const auto x = g.value(i);
    const auto q = Uniform<0, kHighest>::template nearest<S>(S::mul(S::add(x, min), inverse));
    const auto wq = g.weigh(i, q);
    sums.q = S::add(sums.q, wq);
    sums.qq = S::add(sums.qq, S::mul(wq, q));
    sums.xq = S::add(sums.xq, S::mul(wq, x));
  }
  return sums;
}

// Squared error of scale * q - min for the q of the sums, from the sums alone: sum of x^2 + (scale
// q)^2 + min^2 - 2 scale q x + 2 min x - 2 scale min q. Cheap, but what cancels leaves a rounding
// of about kSumsRounding * total.xx.
inline constexpr float kSumsRounding = 4e-6f;
template <class S>
typename S::Floats error_of_sums(const AffineSums<S>& sums, const Totals<S>& total,
                                 typename S::Floats scale, typename S::Floats min) noexcept {
  const auto q = S::sub(S::mul(scale, sums.qq), S::add(sums.xq, sums.xq));
  const auto m = S::add(S::mul(min, sums.w), S::add(sums.x, sums.x));
  const auto product = S::mul(S::mul(scale, min), S::add(sums.q, sums.q));
  const auto squares = S::add(S::add(total.xx, S::mul(scale, q)), S::mul(min, m));
  return S::max(S::sub(squares, product), S::set(0.0f));
}

// Squared error of scale * q - min for these q.
template <int kHighest, class G>
LOCKSTEP_GROUP_LOOP typename G::Floats affine_error(const G& g, typename G::Floats inverse,
                                                    typename G::Floats q_min,
                                                    typename G::Floats scale,
                                                    typename G::Floats min) noexcept {
  using S = typename G::S;
  auto error = S::set(0.0f);
  for (int i = 0; i < G::kValues; ++i) {
    const auto x = g.value(i);
    const auto q = Uniform<0, kHighest>::template nearest<S>(S::mul(S::add(x, q_min), inverse));
    const auto off = S::sub(x, S::sub(S::mul(scale, q), min));
    error = S::add(error, g.weigh(i, S::mul(off, off)));
  }
  return error;
}

// The same with each value at its nearest level: as decoded.
template <int kHighest, class G>
typename G::Floats affine_error(const G& g, typename G::Floats scale,
                                typename G::Floats min) noexcept {
  return affine_error<kHighest>(g, inverse_of<typename G::S>(scale), min, scale, min);
}

// Best real scale and minimum of every group. Another scale than the best one costs curvature *
// (scale - best)^2 if the minimum follows by `slope` per unit of scale; another minimum than that
// costs weight times its square.
template <class S>
struct AffineFit {
  typename S::Floats scale, min, error, slope, curvature, weight;
};

// Least squares for fixed q; where that asks for a minimum below zero and the format has none, the
// best scale without a minimum.
template <class S, bool kAnyMin>
LOCKSTEP_GROUP_LOOP void refit(const AffineSums<S>& sums, typename S::Floats& scale,
                               typename S::Floats& min) noexcept {
  const auto zero = S::set(0.0f);
  const auto det = S::sub(S::mul(sums.w, sums.qq), S::mul(sums.q, sums.q));
  scale = S::div(S::sub(S::mul(sums.w, sums.xq), S::mul(sums.x, sums.q)), det);
  min = S::div(S::sub(S::mul(sums.q, sums.xq), S::mul(sums.qq, sums.x)), det);
  auto bare = S::select_less(det, S::set(0x1p-60f), S::set(-1.0f), min);
  if constexpr (kAnyMin) bare = S::select_less(det, S::set(0x1p-60f), S::set(-1.0f), zero);
  scale = S::select_less(bare, zero, S::div(sums.xq, sums.qq), scale);
  min = S::select_less(bare, zero, zero, min);
}

template <class S>
LOCKSTEP_GROUP_LOOP void keep_better(const AffineFit<S>& tried, AffineFit<S>& fit) noexcept {
  fit.scale = S::select_less(tried.error, fit.error, tried.scale, fit.scale);
  fit.min = S::select_less(tried.error, fit.error, tried.min, fit.min);
  fit.slope = S::select_less(tried.error, fit.error, tried.slope, fit.slope);
  fit.curvature = S::select_less(tried.error, fit.error, tried.curvature, fit.curvature);
  fit.error = S::select_less(tried.error, fit.error, tried.error, fit.error);
}

// `kIsRough`: the error is that of the sums, for comparing many candidates.
template <int kHighest, bool kAnyMin, bool kIsRough, class G>
void improve(const G& g, const Totals<typename G::S>& total, typename G::Floats inverse,
             typename G::Floats min, AffineFit<typename G::S>& fit) noexcept {
  using S = typename G::S;
  const auto sums = affine_sums<kHighest>(g, total, inverse, min);
  AffineFit<S> tried = fit;
  refit<S, kAnyMin>(sums, tried.scale, tried.min);
  if constexpr (kAnyMin) {
    tried.scale = as_f16<S>(tried.scale);
    tried.min = as_f16<S>(tried.min);
  }
  if constexpr (kIsRough) {
    tried.error = error_of_sums<S>(sums, total, tried.scale, tried.min);
  } else {
    tried.error = affine_error<kHighest>(g, tried.scale, tried.min);
  }
  tried.slope = S::div(sums.q, sums.w);
  // A minimum of zero cannot follow downwards.
  const auto follows = S::mul(sums.q, tried.slope);
  tried.curvature = S::sub(sums.qq, S::select_less(S::set(0.0f), tried.min, follows, S::set(0.0f)));
  keep_better(tried, fit);
}

template <class S>
struct LaneRange {
  typename S::Floats low, high;
};

template <class G>
LaneRange<typename G::S> range_of_lanes(const G& g) noexcept {
  using S = typename G::S;
  LaneRange<S> range{g.value(0), g.value(0)};
  for (int i = 1; i < G::kValues; ++i) {
    range.low = S::min(g.value(i), range.low);
    range.high = S::max(g.value(i), range.high);
  }
  return range;
}

// Where the levels begin and end: this many steps inside the range of the values.
struct Insets {
  float first, step;
  int count;
};

template <int kHighest, bool kAnyMin, class G>
AffineFit<typename G::S> search_affine(const G& g, const Insets& insets, int rounds) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  auto [low, high] = range_of_lanes(g);
  if constexpr (!kAnyMin) low = S::min(low, zero);
  AffineFit<S> fit{zero, zero, zero, zero, zero, zero};
  // No levels at all, only a minimum: the mean, if it may be subtracted.
  const auto total = totals_of(g);
  fit.weight = total.w;
  fit.min = S::div(S::sub(zero, total.x), total.w);
  if constexpr (kAnyMin) {
    fit.min = as_f16<S>(fit.min);
  } else {
    fit.min = S::max(fit.min, zero);
  }
  fit.error = affine_error<kHighest>(g, zero, fit.min);
  const auto range = S::sub(high, low);
  const auto one_step = S::mul(range, S::set(1.0f / static_cast<float>(kHighest)));
  // Where many scales are equally good, as for one value alone, the range itself is taken: it is
  // tried first, and others must be better by more than roundings.
  improve<kHighest, kAnyMin, false>(g, total, inverse_of<S>(one_step), S::sub(zero, low), fit);
  auto rough = fit;
  rough.error = S::set(kInfinity);
  for (int a = 0; a < insets.count; ++a) {
    const float from_low = insets.first + insets.step * static_cast<float>(a);
    const auto min = S::sub(S::mul(one_step, S::set(-from_low)), low);
    for (int b = 0; b < insets.count; ++b) {
      const float from_high = insets.first + insets.step * static_cast<float>(b);
      const auto levels = S::set(static_cast<float>(kHighest) + from_low + from_high);
      improve<kHighest, kAnyMin, true>(g, total, S::div(levels, range), min, rough);
    }
  }
  rough.error =
      S::add(affine_error<kHighest>(g, rough.scale, rough.min), S::mul(total.xx, S::set(1e-11f)));
  keep_better(rough, fit);
  for (int round = 0; round < rounds; ++round) {
    improve<kHighest, kAnyMin, false>(g, total, inverse_of<S>(fit.scale), fit.min, fit);
  }
  return fit;
}

// The public tools' way to a start for the block: large values count more, the levels begin at the
// smallest value, and levels are not taken anew for the refitted scale. It rarely wins, but what it
// finds must never be better than what is kept.
template <int kHighest, class G>
AffineFit<typename G::S> usual_start(const G& g, const Insets& outer) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  Groups<S, G::kValues, true> tilted;
  auto squares = zero;
  for (int i = 0; i < G::kValues; ++i) {
    squares = S::add(squares, S::mul(g.value(i), g.value(i)));
  }
  float mean[kLanes];
  S::store(S::mul(squares, S::set(1.0f / static_cast<float>(G::kValues))), mean);
  for (float& lane : mean) lane = __builtin_sqrtf(lane);
  for (int i = 0; i < G::kValues; ++i) {
    S::store(g.value(i), tilted.x + i * kLanes);
    S::store(g.weigh(i, S::add(S::load(mean), magnitude<S>(g.value(i)))), tilted.w + i * kLanes);
  }
  const auto total = totals_of(tilted);
  auto [low, high] = range_of_lanes(g);
  low = S::min(low, zero);
  const auto range = S::sub(high, low);
  const auto min = S::sub(zero, low);
  const auto all = S::set(static_cast<float>(kHighest));
  AffineFit<S> fit{S::div(range, all), min, zero, zero, zero, zero};
  fit.error = affine_error<kHighest>(tilted, fit.scale, fit.min);
  for (int k = 0; k < outer.count; ++k) {
    const float more = outer.first + outer.step * static_cast<float>(k);
    const auto inverse = S::div(S::add(all, S::set(more)), range);
    AffineFit<S> tried = fit;
    const auto sums = affine_sums<kHighest>(tilted, total, inverse, min);
    refit<S, false>(sums, tried.scale, tried.min);
    tried.error = error_of_sums<S>(sums, total, tried.scale, tried.min);
    keep_better(tried, fit);
  }
  return fit;
}

// What the blocks have been given so far, lane by lane, as ScaledLanes.
struct AffineLanes {
  float d[kLanes], dmin[kLanes], scale[kLanes], min[kLanes], error[kLanes];
};

// Tries d and dmin with the integers within 1 of the group's real scale over d, and for each of
// them within 1 of the minimum that belongs to it. With a radius, the best scale within it is found
// first and stands in for the real one: errors have many dips, some far from the deepest.
template <int kHighest, class Integers, class G>
void try_affine(const G& g, int block_groups, const float* d_lanes, const float* dmin_lanes,
                const AffineFit<typename G::S>& fit, int radius, AffineLanes& best) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  const auto d = S::load(d_lanes);
  const auto dmin = S::load(dmin_lanes);
  const auto inverse_min = inverse_of<S>(dmin);
  const auto near = [](typename S::Floats center, int off) noexcept {
    return Integers::template nearest<S>(S::add(center, S::set(static_cast<float>(off))));
  };
  const auto min_for = [&](typename S::Floats scale) noexcept {
    const auto moved = S::sub(S::mul(d, scale), fit.scale);
    const auto follows = S::add(fit.min, S::mul(moved, fit.slope));
    return Integers::template nearest<S>(S::mul(follows, inverse_min));
  };
  const auto real = Integers::template nearest<S>(S::mul(fit.scale, inverse_of<S>(d)));
  auto center = real;
  auto center_error = S::set(kInfinity);
  for (int i = -radius; radius != 0 && i <= radius; ++i) {
    const auto scale = near(real, i);
    const auto error = affine_error<kHighest>(g, S::mul(d, scale), S::mul(dmin, min_for(scale)));
    center = S::select_less(error, center_error, scale, center);
    center_error = S::select_less(error, center_error, error, center_error);
  }
  auto best_error = S::set(kInfinity);
  auto best_scale = zero;
  auto best_min = zero;
  for (int i = -1; i <= 1; ++i) {
    const auto scale = near(center, i);
    const auto min_center = min_for(scale);
    for (int j = -1; j <= 1; ++j) {
      const auto min = near(min_center, j);
      const auto error = affine_error<kHighest>(g, S::mul(d, scale), S::mul(dmin, min));
      best_scale = S::select_less(error, best_error, scale, best_scale);
      best_min = S::select_less(error, best_error, min, best_min);
      best_error = S::select_less(error, best_error, error, best_error);
    }
  }
  float error_lanes[kLanes];
  float scale_lanes[kLanes];
  float min_lanes[kLanes];
  S::store(best_error, error_lanes);
  S::store(best_scale, scale_lanes);
  S::store(best_min, min_lanes);
  sum_blocks(error_lanes, block_groups);
  for (int j = 0; j < kLanes; ++j) {
    if (!(error_lanes[j] < best.error[j])) continue;
    best.error[j] = error_lanes[j];
    best.d[j] = d_lanes[j];
    best.dmin[j] = dmin_lanes[j];
    best.scale[j] = scale_lanes[j];
    best.min[j] = min_lanes[j];
  }
}

struct AffineEffort {
  Insets insets;
  int group_rounds;
  Insets usual;
  int scales, mins;    // candidates of d, and of dmin for each
  int rounds, radius;  // of refitting both, with the integers on either side
};

// Candidates of dmin once d is given: the minima follow the rounded scales.
template <class Integers, class G>
void screen_mins(const AffineFit<typename G::S>& fit, int block_groups, const float* d_lanes,
                 Screen* screens) noexcept {
  using S = typename G::S;
  const auto d = S::load(d_lanes);
  const auto scale = S::mul(d, Integers::template nearest<S>(S::mul(fit.scale, inverse_of<S>(d))));
  const auto follows = S::add(fit.min, S::mul(S::sub(scale, fit.scale), fit.slope));
  float mins[kLanes];
  float weight[kLanes];
  S::store(S::max(follows, S::set(0.0f)), mins);
  S::store(fit.weight, weight);
  for (int first = 0; first < kLanes; first += block_groups) {
    screen<S, Integers>(mins + first, weight + first, block_groups, screens[first]);
  }
}

// d and dmin that fit the levels, scales and minima of each block best.
template <int kHighest, class G>
AffineFit<typename G::S> refit_blocks(const G& g, int block_groups, const AffineLanes& best,
                                      float* d, float* dmin) noexcept {
  using S = typename G::S;
  const auto scale = S::mul(S::load(best.d), S::load(best.scale));
  const auto min = S::mul(S::load(best.dmin), S::load(best.min));
  const auto sums = affine_sums<kHighest>(g, totals_of(g), inverse_of<S>(scale), min);
  float w[kLanes], x[kLanes], q[kLanes], qq[kLanes], xq[kLanes];
  S::store(sums.w, w);
  S::store(sums.x, x);
  S::store(sums.q, q);
  S::store(sums.qq, qq);
  S::store(sums.xq, xq);
  for (int first = 0; first < kLanes; first += block_groups) {
    double ss = 0, sm = 0, mm = 0, xs = 0, xm = 0;
    for (int j = first; j < first + block_groups; ++j) {
      const double s = double{best.scale[j]};
      const double m = double{best.min[j]};
      ss += s * s * double{qq[j]};
      sm += s * m * double{q[j]};
      mm += m * m * double{w[j]};
      xs += s * double{xq[j]};
      xm += m * double{x[j]};
    }
    const double det = ss * mm - sm * sm;
    const bool both = mm > 0 && det > 1e-9 * ss * mm;
    const double new_d = both ? (xs * mm - xm * sm) / det : ss > 0 ? xs / ss : 0.0;
    const double new_dmin = both ? (xs * sm - xm * ss) / det : mm > 0 ? -xm / mm : 0.0;
    for (int j = first; j < first + block_groups; ++j) {
      d[j] = static_cast<float>(new_d);
      dmin[j] = static_cast<float>(new_dmin);
    }
  }
  const auto new_d = as_f16<S>(S::load(d));
  const auto new_dmin = as_f16<S>(S::load(dmin));
  S::store(new_d, d);
  S::store(new_dmin, dmin);
  return {S::mul(new_d, S::load(best.scale)),
          S::mul(new_dmin, S::load(best.min)),
          S::set(0.0f),
          S::div(sums.q, sums.w),
          S::set(0.0f),
          sums.w};
}

template <int kHighest, class Integers, class G>
AffineLanes search_affine_blocks(const G& g, int block_groups,
                                 const AffineEffort& effort) noexcept {
  using S = typename G::S;
  auto fit = search_affine<kHighest, false>(g, effort.insets, effort.group_rounds);
  float real[kLanes];
  float curvature[kLanes];
  S::store(fit.scale, real);
  S::store(fit.curvature, curvature);
  Screen scales[kLanes];
  Screen mins[kLanes];
  AffineLanes best;
  for (int first = 0; first < kLanes; first += block_groups) {
    screen<S, Integers>(real + first, curvature + first, block_groups, scales[first]);
  }
  for (int j = 0; j < kLanes; ++j) {
    best.d[j] = __builtin_nanf("");
    best.dmin[j] = best.scale[j] = best.min[j] = 0;
    best.error[j] = kInfinity;
  }
  float d[kLanes];
  float dmin[kLanes];
  for (int k = 0; k < effort.scales; ++k) {
    for (int first = 0; first < kLanes; first += block_groups) {
      const float taken = scales[first].take();
      for (int j = first; j < first + block_groups; ++j) d[j] = taken;
    }
    screen_mins<Integers, G>(fit, block_groups, d, mins);
    for (int l = 0; l < effort.mins; ++l) {
      for (int first = 0; first < kLanes; first += block_groups) {
        const float taken = mins[first].take();
        for (int j = first; j < first + block_groups; ++j) dmin[j] = taken;
      }
      try_affine<kHighest, Integers>(g, block_groups, d, dmin, fit, 0, best);
    }
  }
  const auto usual = usual_start<kHighest>(g, effort.usual);
  largest_multiple<S, Integers>(usual.scale, block_groups, d);
  largest_multiple<S, Integers>(usual.min, block_groups, dmin);
  try_affine<kHighest, Integers>(g, block_groups, d, dmin, usual, 0, best);
  for (int round = 0; round < effort.rounds; ++round) {
    const auto refitted = refit_blocks<kHighest>(g, block_groups, best, d, dmin);
    try_affine<kHighest, Integers>(g, block_groups, d, dmin, refitted, effort.radius, best);
  }
  return best;
}

}  // namespace
}  // namespace lockstep::quant
