// See statistics.h.
#include "runtime/evaluate/statistics.h"

#include <algorithm>
#include <cmath>

namespace lockstep::evaluate {

namespace {

// With fewer tokens an error bar would say more about chance than about the model.
constexpr std::size_t kFewTokens = 10;

Estimate exp_of(Estimate log_value) noexcept {
  const double value = std::exp(log_value.value);
  return {value, value * log_value.error};
}

// Error of a - b (or of a / b in logarithms) of two correlated means.
double error_of_difference(double a, double b, double covariance) noexcept {
  return std::sqrt(std::max(0.0, a * a + b * b - 2 * covariance));
}

}  // namespace

Estimate ScoreStatistics::Moments::mean() const noexcept {
  if (count == 0) return {};
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  const double variance = squares / n - mean * mean;
  const bool known = variance > 0 && count > kFewTokens;
  return {mean, known ? std::sqrt(variance / (n - 1)) : 0.0};
}

void ScoreStatistics::add(std::span<const TokenScore> scores) {
  for (const TokenScore& score : scores) {
    nll_.add(score.nll);
    base_nll_.add(score.base_nll);
    nll_products_ += score.nll * score.base_nll;
    kl_.add(score.kl);
    p_difference_.add(score.p_difference);
    p_difference_squared_.add(score.p_difference * score.p_difference);
    same_top_ += score.same_top ? 1 : 0;
    kl_values_.push_back(static_cast<float>(score.kl));
    p_difference_values_.push_back(static_cast<float>(score.p_difference));
  }
}

Estimate ScoreStatistics::perplexity() const noexcept { return exp_of(nll_.mean()); }

Divergence ScoreStatistics::means() const {
  Divergence result;
  if (count() == 0) return result;
  const auto n = static_cast<double>(count());
  const Estimate log_own = nll_.mean();
  const Estimate log_base = base_nll_.mean();
  const double covariance =
      count() < kFewTokens ? 0.0 : (nll_products_ / n - log_own.value * log_base.value) / (n - 1);
  const Estimate own = exp_of(log_own);
  result.base_perplexity = exp_of(log_base);
  result.log_ratio = {log_own.value - log_base.value,
                      error_of_difference(log_own.error, log_base.error, covariance)};
  result.ratio = exp_of(result.log_ratio);
  result.difference = {own.value - result.base_perplexity.value,
                       error_of_difference(own.error, result.base_perplexity.error,
                                           own.value * result.base_perplexity.value * covariance)};
  const double errors = log_own.error * log_base.error;
  result.log_correlation = errors > 0 ? covariance / errors : 0.0;
  result.kl = kl_.mean();
  result.p_difference = p_difference_.mean();
  const Estimate squared = p_difference_squared_.mean();
  const double rms = std::sqrt(squared.value);
  result.p_difference_rms = {rms, rms > 0 ? squared.error / (2 * rms) : 0.0};
  const double same = static_cast<double>(same_top_) / n;
  result.same_top = {same, n > 1 ? std::sqrt(same * (1 - same) / (n - 1)) : 0.0};
  return result;
}

Divergence ScoreStatistics::divergence() const {
  Divergence result = means();
  result.kl_tails = tails_of(kl_values_);
  result.p_difference_tails = tails_of(p_difference_values_);
  return result;
}

Tails tails_of(std::vector<float> values) {
  Tails tails;
  if (values.empty()) return tails;
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) {
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double rest = place - static_cast<double>(below);
    return (1 - rest) * double{values[below]} + rest * double{values[above]};
  };
  return {.min = at(0),
          .p0_1 = at(0.001),
          .p1 = at(0.01),
          .p5 = at(0.05),
          .p10 = at(0.1),
          .median = at(0.5),
          .p90 = at(0.9),
          .p95 = at(0.95),
          .p99 = at(0.99),
          .p99_9 = at(0.999),
          .max = at(1)};
}

}  // namespace lockstep::evaluate
