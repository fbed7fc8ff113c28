// Means with their errors, and the tails, over the scores of all tokens of a text. Definitions as
// in the public perplexity tool: an error is the standard error of the mean, carried through exp()
// and ratios to first order; percentiles interpolate linearly.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/evaluate/token_scores.h"

namespace lockstep::evaluate {

struct Estimate {
  double value = 0;
  double error = 0;
};

struct Tails {
  double min = 0, p0_1 = 0, p1 = 0, p5 = 0, p10 = 0, median = 0;
  double p90 = 0, p95 = 0, p99 = 0, p99_9 = 0, max = 0;
};

// What a comparison with a reference run gives.
struct Divergence {
  Estimate base_perplexity;
  Estimate log_ratio;          // ln(perplexity / base perplexity)
  Estimate ratio;              // perplexity / base perplexity
  Estimate difference;         // perplexity - base perplexity
  double log_correlation = 0;  // of the two runs' -ln p, -1 to 1
  Estimate kl;                 // nats per token
  Tails kl_tails;
  Estimate p_difference;  // p - p_base of the text's own tokens, a probability
  Tails p_difference_tails;
  Estimate p_difference_rms;
  Estimate same_top;  // share of tokens, 0 to 1
};

class ScoreStatistics {
 public:
  // Scores in text order.
  void add(std::span<const TokenScore> scores);

  std::size_t count() const noexcept { return nll_.count; }
  Estimate perplexity() const noexcept;
  // Without tails: cheap enough for a progress line.
  Divergence means() const;
  Divergence divergence() const;

 private:
  // Sums from which mean and standard error follow.
  struct Moments {
    double sum = 0, squares = 0;
    std::size_t count = 0;
    void add(double x) noexcept {
      sum += x;
      squares += x * x;
      ++count;
    }
    Estimate mean() const noexcept;
  };

  Moments nll_, base_nll_, kl_, p_difference_, p_difference_squared_;
  double nll_products_ = 0;  // sum nll * base_nll
  std::size_t same_top_ = 0;
  std::vector<float> kl_values_, p_difference_values_;
};

// Percentiles of any values; all zero without values.
Tails tails_of(std::vector<float> values);

}  // namespace lockstep::evaluate
