// Log-probabilities of tokens: the log-softmax of a row of logits as the model gave them, before
// any penalty, bias, temperature or cut-off. In float64, with sums in one fixed order and functions
// of our own, so that they are the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

struct TokenLogprob {
  TokenId token = kNoToken;
  double logprob = 0;  // natural logarithm of its probability; -infinity for a logit of -infinity

  bool operator==(const TokenLogprob&) const = default;
};

// The log-softmax of one row of logits, of which none is NaN or +infinity.
class LogSoftmax {
 public:
  // `top`: the largest of `logits`, finite.
  LogSoftmax(std::span<const float> logits, float top) noexcept;

  double operator()(float logit) const noexcept { return (double{logit} - top_) - log_sum_; }

 private:
  double top_;
  double log_sum_;  // ln of the sum of e^(logit - top)
};

// The `count` largest logits (or all, if there are fewer), largest first, the smaller id first
// among equals; their log-probabilities by `softmax`. Replaces what `out` held.
void top_logprobs(std::span<const float> logits, const LogSoftmax& softmax, std::size_t count,
                  std::vector<TokenLogprob>& out);

}  // namespace lockstep
