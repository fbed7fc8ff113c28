// See logprobs.h. Both functions walk a whole vocabulary for every token of a row that asks, so
// they are written for speed: sums in independent lanes, and a list so short that inserting beats
// any heap.
#include "runtime/logprobs.h"

#include <algorithm>
#include <array>

#include "runtime/portable_math.h"

namespace lockstep {
namespace {

// Lane j sums the elements with i % kLanes == j, in order; then the lanes are added as a tree. Less
// than e^-700 counts as that: beside the 1 that the largest logit adds, it is lost.
constexpr std::size_t kLanes = 16;

// Adds e^(logit - top) of `round` to the lanes: as many as there are lanes, or fewer at the end.
template <std::size_t Size>
void add_round(std::span<const float, Size> round, double top,
               std::array<double, kLanes>& lanes) noexcept {
  std::array<double, kLanes> x{};
  for (std::size_t j = 0; j < round.size(); ++j) {
    x[j] = std::max(double{round[j]} - top, kLowestExponent);
  }
  for (std::size_t j = 0; j < round.size(); ++j) lanes[j] += bounded_exponential(x[j]);
}

double sum_of_exponentials(std::span<const float> logits, double top) noexcept {
  std::array<double, kLanes> lanes{};
  for (; logits.size() >= kLanes; logits = logits.subspan(kLanes)) {
    add_round(logits.first<kLanes>(), top, lanes);
  }
  add_round(logits, top, lanes);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

}  // namespace

LogSoftmax::LogSoftmax(std::span<const float> logits, float top) noexcept
    : top_(double{top}), log_sum_(logarithm(sum_of_exponentials(logits, top_))) {}

void top_logprobs(std::span<const float> logits, const LogSoftmax& softmax, std::size_t count,
                  std::vector<TokenLogprob>& out) {
  out.clear();
  count = std::min(count, logits.size());
  if (count == 0) return;
  // `logprob` holds the logit until the list is complete: which token comes first must not hang on
  // how a subtraction rounds.
  const auto insert = [&](std::size_t i) {
    const double logit{logits[i]};
    const auto at = std::find_if(out.begin(), out.end(),
                                 [&](const TokenLogprob& one) { return one.logprob < logit; });
    out.insert(at, {static_cast<TokenId>(i), logit});
  };
  for (std::size_t i = 0; i < count; ++i) insert(i);
  auto lowest = static_cast<float>(out.back().logprob);
  for (std::size_t i = count; i < logits.size(); ++i) {
    if (!(logits[i] > lowest)) continue;  // a later id loses a tie
    out.pop_back();
    insert(i);
    lowest = static_cast<float>(out.back().logprob);
  }
  for (TokenLogprob& one : out) one.logprob = softmax(static_cast<float>(one.logprob));
}

}  // namespace lockstep
