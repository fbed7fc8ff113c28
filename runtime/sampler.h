// Choosing the next token from logits. A pure function of logits, parameters, seed and draw number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

struct SamplingParams {
  float temperature = 0.0f;  // 0: greedy
  std::int32_t top_k = 0;    // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  std::uint64_t seed = 0;

  // Throws Error(usage) naming the field and its range: temperature in [0, 100], top_k >= 0, top_p
  // in (0, 1], min_p in [0, 1].
  void check() const;
};

class Sampler {
 public:
  explicit Sampler(const SamplingParams& params);

  // Greedy: the largest logit, the smallest id on a tie. Else top-k, then top-p, then min-p, then
  // temperature, in the order and with the definitions of the public tools. Nothing if a logit is
  // NaN or +inf, or all are -inf.
  std::optional<TokenId> sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    TokenId id;
    double weight;  // proportional to its probability, at the step under way
  };
  static bool before(const Candidate& a, const Candidate& b) noexcept;
  void keep_top_k();
  void keep_top_p(double top);
  void keep_min_p(double top);

  SamplingParams params_;
  std::uint64_t draws_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace lockstep
