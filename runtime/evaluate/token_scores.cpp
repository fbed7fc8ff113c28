// See token_scores.h. Sums run in index order in float64.
#include "runtime/evaluate/token_scores.h"

#include <algorithm>
#include <cmath>

namespace lockstep::evaluate {

namespace {

// Span of log-probabilities that 16 bits resolve, and below which a reference counts as zero.
constexpr float kSpan = 16.0f;
constexpr float kCodes = 65535.0f;

double sum_of(std::span<const float> values) noexcept {
  double sum = 0;
  for (const float value : values) sum += double{value};
  return sum;
}

}  // namespace

TokenScorer::TokenScorer(const quant::RowKernels& kernels, std::size_t vocabulary)
    : kernels_(kernels), scratch_(vocabulary) {}

TokenScorer::Normalizer TokenScorer::normalize(std::span<const float> logits) noexcept {
  Normalizer result;
  const auto top = std::max_element(logits.begin(), logits.end());
  result.top = static_cast<std::size_t>(top - logits.begin());
  result.max = *top;
  for (std::size_t i = 0; i < logits.size(); ++i) scratch_[i] = logits[i] - result.max;
  kernels_.exp(scratch_.data(), scratch_.data(), scratch_.size());
  result.log_sum = std::log(sum_of(scratch_));
  return result;
}

TokenScore TokenScorer::score_of(const Normalizer& normalizer, float logit) noexcept {
  TokenScore score;
  score.nll = normalizer.log_total() - double{logit};
  score.is_finite = std::isfinite(normalizer.log_sum) && std::isfinite(score.nll);
  return score;
}

TokenScore TokenScorer::score(std::span<const float> logits, std::size_t token) noexcept {
  return score_of(normalize(logits), logits[token]);
}

TokenScore TokenScorer::score(std::span<const float> logits, std::size_t token,
                              const PackedLogProbs& base, double base_nll) noexcept {
  const Normalizer normalizer = normalize(logits);
  const double log_total = normalizer.log_total();
  TokenScore score = score_of(normalizer, logits[token]);
  score.base_nll = std::isnan(base_nll) ? -double{base.at(token)} : base_nll;
  score.p_difference = std::exp(-score.nll) - std::exp(-score.base_nll);

  for (std::size_t i = 0; i < logits.size(); ++i) scratch_[i] = base.at(i);
  kernels_.exp(scratch_.data(), scratch_.data(), scratch_.size());
  std::size_t base_top = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (base.codes[i] > base.codes[base_top]) base_top = i;
    const float log_base = base.at(i);
    if (log_base <= -kSpan) continue;
    score.kl += double{scratch_[i]} * (double{log_base} - (double{logits[i]} - log_total));
  }
  score.same_top = base_top == normalizer.top;
  return score;
}

TokenScore TokenScorer::score_and_pack(std::span<const float> logits, std::size_t token,
                                       PackedLogProbs& packed) noexcept {
  const Normalizer normalizer = normalize(logits);
  const TokenScore score = score_of(normalizer, logits[token]);
  if (!score.is_finite) {  // nothing that 16 bits could hold
    packed.step = packed.lowest = 0;
    std::fill(packed.codes.begin(), packed.codes.end(), std::uint16_t{0});
    return score;
  }
  const float min =
      std::max(*std::min_element(logits.begin(), logits.end()), normalizer.max - kSpan);
  packed.step = (normalizer.max - min) / kCodes;
  packed.lowest = static_cast<float>(double{min} - double{normalizer.max} - normalizer.log_sum);
  // All logits alike: one code for everything.
  const float inverse = packed.step > 0 ? 1.0f / packed.step : 0.0f;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float code = logits[i] > min ? std::nearbyint(inverse * (logits[i] - min)) : 0.0f;
    packed.codes[i] = static_cast<std::uint16_t>(std::clamp(code, 0.0f, kCodes));
  }
  return score;
}

}  // namespace lockstep::evaluate
