// Encoders for values of the form scale * level: one scale per group, stored by itself or as an
// integer multiple of a block's f16 scale.
//
// The search has two stages. First every group alone: which real scale is best? Many scales are
// tried, the levels they lead to taken, and the scale refitted to these levels by least squares.
// Then the block: which f16 scale d lets integer multiples of it come closest to the groups'
// scales? Candidates of d are ranked by the growth in error that rounding the scales would cause,
// the best ones tried out with the integers around, and d refitted to the outcome. What is kept is
// always what has the smallest error as decoded.
#pragma once

#include "quant/encode/lanes.inl.h"

namespace lockstep::quant {
namespace {

// Multiples of the scale that brings the largest value to the last level, to be tried.
struct Grid {
  float first, step;
  int count;
};

inline constexpr float kMargin = 1.000002f;  // a few roundings

// Best real scale of every group, and what one more unit of scale costs: error grows with
// curvature * (scale - best)^2 near the best one.
template <class S>
struct ScaleFit {
  typename S::Floats scale, curvature;
};

// The value of largest magnitude in each group, sign kept.
template <class G>
typename G::Floats extreme_of(const G& g) noexcept {
  using S = typename G::S;
  auto low = g.value(0);
  auto high = low;
  for (int i = 1; i < G::kValues; ++i) {
    low = S::min(g.value(i), low);
    high = S::max(g.value(i), high);
  }
  return S::select_less(high, S::sub(S::set(0.0f), low), low, high);
}

template <class Levels, class G>
class ScaleSearch {
  using S = typename G::S;
  using Floats = typename S::Floats;

 public:
  // Where many scales are equally good, as for one value alone, the first one is kept: the smallest
  // one, and where levels are integers one of few bits.
  explicit ScaleSearch(const G& g) noexcept : g_(g), extreme_(extreme_of(g)) {
    fit_ = {S::set(0.0f), S::set(0.0f)};
    needed_ = S::set(0.0f);
    keep_better(Levels::kLow);
  }
  // Tries the scale that brings the value of largest magnitude to `level`, refitted to the levels
  // that the values then have.
  void keep_better(float level) noexcept {
    const auto sums = scale_sums<Levels>(g_, S::div(S::set(level), extreme_));
    // What the best scale for these levels takes off the error of all zeros.
    const auto gain = S::div(S::mul(sums.xq, sums.xq), sums.qq);
    fit_.scale = S::select_less(needed_, gain, S::div(sums.xq, sums.qq), fit_.scale);
    fit_.curvature = S::select_less(needed_, gain, sums.qq, fit_.curvature);
    needed_ = S::select_less(needed_, gain, S::mul(gain, S::set(kMargin)), needed_);
  }
  const ScaleFit<S>& fit() const noexcept { return fit_; }

 private:
  const G& g_;
  Floats extreme_, needed_;
  ScaleFit<S> fit_;
};

template <class Levels, class G>
ScaleFit<typename G::S> search_scale(const G& g, const Grid& grid) noexcept {
  ScaleSearch<Levels, G> search(g);
  for (int k = 0; k < grid.count; ++k) {
    const float ratio = grid.first + grid.step * static_cast<float>(k);
    // The levels are not symmetric: the largest value may go to either end.
    search.keep_better(Levels::kLow * ratio);
    search.keep_better(Levels::kHigh * ratio);
  }
  return search.fit();
}

// The public tools' way to a start: values count by their squares, and the largest one goes near
// the lowest level. It rarely wins, but what it finds must never be better than what is kept.
template <class Levels, class G>
typename G::Floats usual_scale(const G& g, const Grid& around_lowest) noexcept {
  using S = typename G::S;
  using Tilted = Groups<S, G::kValues, true>;
  Tilted tilted;
  for (int i = 0; i < G::kValues; ++i) {
    S::store(g.value(i), tilted.x + i * kLanes);
    S::store(g.weigh(i, S::mul(g.value(i), g.value(i))), tilted.w + i * kLanes);
  }
  ScaleSearch<Levels, Tilted> search(tilted);
  for (int k = 0; k < around_lowest.count; ++k) {
    search.keep_better(Levels::kLow + around_lowest.first +
                       around_lowest.step * static_cast<float>(k));
  }
  return search.fit().scale;
}

// Candidates of a block's f16 scale.
struct Screen {
  static constexpr int kCount = 64;
  float d[kCount], cost[kCount];

  // The cheapest candidate, which is then struck out with all equal ones; NaN if none is left.
  float take() noexcept {
    int at = -1;
    float least = kInfinity;
    for (int i = 0; i < kCount; ++i) {
      if (cost[i] < least) {
        least = cost[i];
        at = i;
      }
    }
    if (at < 0) return __builtin_nanf("");
    const float taken = d[at];
    for (int i = 0; i < kCount; ++i) {
      if (d[i] == taken) cost[i] = kInfinity;
    }
    return taken;
  }
};

inline constexpr float kLeastF16 = 0x1p-24f;

// Ranks scales d by sum of curvature * (scale - d * integer)^2 over `count` groups. The largest
// scale is given the integers from a little past the last one down to half of it, and the fractions
// between: small scales are few in f16, and a coarse d among them may hit all groups well.
template <class S, class Scales>
LOCKSTEP_GROUP_LOOP void screen(const float* scale, const float* curvature, int count,
                                Screen& out) noexcept {
  constexpr bool kSigned = Scales::kLow < 0.0f;
  constexpr float kTop = kSigned ? -Scales::kLow : Scales::kHigh;
  // A power of two, so that the integers are met exactly.
  constexpr float kStep = kTop > 100.0f  ? 1.0f
                          : kTop > 50.0f ? 0.5f
                          : kTop > 20.0f ? 0.25f
                                         : 0.125f;
  float largest = 0;
  for (int j = 0; j < count; ++j) {
    if (__builtin_fabsf(scale[j]) > __builtin_fabsf(largest)) largest = scale[j];
  }
  if (kSigned) largest = -largest;
  const float least = largest < 0.0f ? -kLeastF16 : kLeastF16;
  for (int first = 0; first < Screen::kCount; first += kLanes) {
    float ratio[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      ratio[i] = kTop + kStep * static_cast<float>(4 - first - i);
    }
    auto d = as_f16<S>(S::div(S::set(largest), S::load(ratio)));
    d = S::select_less(magnitude<S>(d), S::set(kLeastF16), S::set(least), d);
    const auto inverse = S::div(S::set(1.0f), d);
    auto cost = S::set(0.0f);
    for (int j = 0; j < count; ++j) {
      const auto rounded = Scales::template nearest<S>(S::mul(S::set(scale[j]), inverse));
      const auto off = S::sub(S::set(scale[j]), S::mul(d, rounded));
      cost = S::add(cost, S::mul(S::set(curvature[j]), S::mul(off, off)));
    }
    S::store(d, out.d + first);
    S::store(cost, out.cost + first);
  }
}

// What a block has been given so far, lane by lane: the block's scale, the group's multiple of it,
// and the error of the whole block.
struct ScaledLanes {
  float d[kLanes], scale[kLanes], error[kLanes];
};

// Sum of the error of the lanes of each block, in all lanes of the block.
inline void sum_blocks(float* error, int block_groups) noexcept {
  for (int first = 0; first < kLanes; first += block_groups) {
    double sum = 0;
    for (int j = first; j < first + block_groups; ++j) sum += double{error[j]};
    for (int j = first; j < first + block_groups; ++j) error[j] = static_cast<float>(sum);
  }
}

// Tries d with the integers within `radius` of the group's real scale over d, and with those around
// its mirror image.
template <class Levels, class Scales, class G>
void try_scales(const G& g, int block_groups, const float* d_lanes, typename G::Floats real,
                int radius, bool mirror, ScaledLanes& best) noexcept {
  using S = typename G::S;
  const auto d = S::load(d_lanes);
  const auto center = Scales::template nearest<S>(S::mul(real, inverse_of<S>(d)));
  auto error = S::set(kInfinity);
  auto scale = S::set(0.0f);
  const auto keep_better = [&](typename S::Floats around, int off) noexcept {
    const auto tried = Scales::template nearest<S>(S::add(around, S::set(static_cast<float>(off))));
    const auto this_error = scale_error<Levels>(g, S::mul(d, tried));
    scale = S::select_less(this_error, error, tried, scale);
    error = S::select_less(this_error, error, this_error, error);
  };
  for (int off = -radius; off <= radius; ++off) keep_better(center, off);
  // The scale of the other sign that brings the same values to the other end of the levels.
  if (mirror) {
    for (const float ratio : {Levels::kHigh / Levels::kLow, Levels::kLow / Levels::kHigh}) {
      const auto mirrored = Scales::template nearest<S>(S::mul(center, S::set(ratio)));
      for (int off = -1; off <= 1; ++off) keep_better(mirrored, off);
    }
  }
  float error_lanes[kLanes];
  float scale_lanes[kLanes];
  S::store(error, error_lanes);
  S::store(scale, scale_lanes);
  sum_blocks(error_lanes, block_groups);
  for (int j = 0; j < kLanes; ++j) {
    if (!(error_lanes[j] < best.error[j])) continue;
    best.error[j] = error_lanes[j];
    best.d[j] = d_lanes[j];
    best.scale[j] = scale_lanes[j];
  }
}

// The scale that makes the largest of each block, by magnitude, the last multiple.
template <class S, class Integers>
void largest_multiple(typename S::Floats scales, int block_groups, float* d) noexcept {
  constexpr float kTop = Integers::kLow < 0.0f ? Integers::kLow : Integers::kHigh;
  float lanes[kLanes];
  S::store(scales, lanes);
  for (int first = 0; first < kLanes; first += block_groups) {
    float largest = 0;
    for (int j = first; j < first + block_groups; ++j) {
      largest = __builtin_fabsf(lanes[j]) > __builtin_fabsf(largest) ? lanes[j] : largest;
    }
    for (int j = first; j < first + block_groups; ++j) d[j] = largest / kTop;
  }
  S::store(as_f16<S>(S::load(d)), d);
}

// How hard to search: real scales per group; candidates of d tried out, and integers tried on
// either side; rounds of refitting d, with the integers on either side.
struct ScaledEffort {
  Grid grid;
  Grid usual;  // of the lowest level, added to it
  int candidates, radius, rounds, round_radius;
  bool mirror;  // in these rounds
};

// A block without any scale above zero, or with all scales too large, keeps d = 0 or NaN.
template <class Levels, class Scales, class G>
ScaledLanes search_scaled_blocks(const G& g, int block_groups,
                                 const ScaledEffort& effort) noexcept {
  using S = typename G::S;
  const auto fit = search_scale<Levels>(g, effort.grid);
  float real[kLanes];
  float curvature[kLanes];
  S::store(fit.scale, real);
  S::store(fit.curvature, curvature);
  Screen screens[kLanes];
  ScaledLanes best;
  for (int first = 0; first < kLanes; first += block_groups) {
    screen<S, Scales>(real + first, curvature + first, block_groups, screens[first]);
  }
  for (int j = 0; j < kLanes; ++j) {
    best.d[j] = __builtin_nanf("");
    best.scale[j] = 0;
    best.error[j] = kInfinity;
  }
  float d[kLanes];
  for (int k = 0; k < effort.candidates; ++k) {
    for (int first = 0; first < kLanes; first += block_groups) {
      const float taken = screens[first].take();
      for (int j = first; j < first + block_groups; ++j) d[j] = taken;
    }
    try_scales<Levels, Scales>(g, block_groups, d, fit.scale, effort.radius, false, best);
  }
  const auto usual = usual_scale<Levels>(g, effort.usual);
  largest_multiple<S, Scales>(usual, block_groups, d);
  try_scales<Levels, Scales>(g, block_groups, d, usual, 1, effort.mirror, best);
  if (effort.mirror) {
    const auto mirrored = S::mul(usual, S::set(Levels::kLow / Levels::kHigh));
    largest_multiple<S, Scales>(mirrored, block_groups, d);
    try_scales<Levels, Scales>(g, block_groups, d, mirrored, 1, true, best);
  }
  for (int round = 0; round < effort.rounds; ++round) {
    const auto scale = S::load(best.scale);
    const auto sums = scale_sums<Levels>(g, inverse_of<S>(S::mul(S::load(best.d), scale)));
    float xq[kLanes];
    float qq[kLanes];
    S::store(S::mul(scale, sums.xq), xq);
    S::store(S::mul(S::mul(scale, scale), sums.qq), qq);
    sum_blocks(xq, block_groups);
    sum_blocks(qq, block_groups);
    S::store(as_f16<S>(S::div(S::load(xq), S::load(qq))), d);
    const auto refitted =
        S::select_less(S::set(0.0f), sums.qq, S::div(sums.xq, sums.qq), S::set(0.0f));
    try_scales<Levels, Scales>(g, block_groups, d, refitted, effort.round_radius, effort.mirror,
                               best);
  }
  return best;
}

// A group with an f16 scale of its own. Every trial is judged as it would be decoded.
template <class Levels, class G>
typename G::Floats search_own_scale(const G& g, const Grid& grid, const Grid& usual,
                                    int rounds) noexcept {
  using S = typename G::S;
  const auto zero = S::set(0.0f);
  const auto extreme = extreme_of(g);
  auto best = zero;
  auto best_error = scale_error<Levels>(g, zero);
  const auto keep_better = [&](typename G::Floats real) noexcept {
    const auto least = S::select_less(real, zero, S::set(-kLeastF16), S::set(kLeastF16));
    auto d = as_f16<S>(real);
    d = S::select_less(magnitude<S>(d), S::set(kLeastF16), least, d);
    const auto error = scale_error<Levels>(g, d);
    best = S::select_less(error, best_error, d, best);
    best_error = S::select_less(error, best_error, error, best_error);
  };
  const auto refit = [&](typename G::Floats inverse) noexcept {
    const auto sums = scale_sums<Levels>(g, inverse);
    keep_better(S::div(sums.xq, sums.qq));
  };
  keep_better(S::mul(extreme, S::set(1.0f / Levels::kLow)));
  for (int k = 0; k < grid.count; ++k) {
    const float ratio = grid.first + grid.step * static_cast<float>(k);
    refit(S::div(S::set(Levels::kLow * ratio), extreme));
    refit(S::div(S::set(Levels::kHigh * ratio), extreme));
  }
  keep_better(usual_scale<Levels>(g, usual));
  for (int round = 0; round < rounds; ++round) refit(inverse_of<S>(best));
  return best;
}

}  // namespace
}  // namespace lockstep::quant
