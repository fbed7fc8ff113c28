// What one row of logits says about one text token, and how it differs from the row of a reference
// run: the quantities that perplexity and KL divergence are means of. Defined as in the public
// perplexity tool of llama.cpp, so that figures can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/rows.h"

namespace lockstep::evaluate {

// Log-probabilities of a whole vocabulary in 16 bits each, the form in which the public tool keeps
// a reference run: log p[i] = lowest + step * code[i]. Everything more than 16 nats below the
// likeliest token shares the lowest code.
struct PackedLogProbs {
  float step = 0;
  float lowest = 0;
  std::span<std::uint16_t> codes;  // [vocabulary]

  float at(std::size_t token) const noexcept {
    return step * static_cast<float>(codes[token]) + lowest;
  }
};

struct TokenScore {
  double nll = 0;  // -ln p(token)
  // Against a reference; zero without one.
  double base_nll = 0;
  double kl = 0;            // sum p_base ln(p_base / p), over tokens with ln p_base > -16
  double p_difference = 0;  // p(token) - p_base(token)
  bool same_top = false;    // both hold the same token for the likeliest
  bool is_finite = false;   // false: the logits hold a NaN or an infinity
};

// Scores rows of one vocabulary. Owns scratch memory: one per thread. The exponentials are the
// row kernels' own, so the scores are the same bits on every machine.
class TokenScorer {
 public:
  TokenScorer(const quant::RowKernels& kernels, std::size_t vocabulary);

  TokenScore score(std::span<const float> logits, std::size_t token) noexcept;
  // `base_nll`: -ln p_base(token) where it is known exactly, NaN to take it from the codes.
  TokenScore score(std::span<const float> logits, std::size_t token, const PackedLogProbs& base,
                   double base_nll) noexcept;
  // Also fills `packed`, codes included.
  TokenScore score_and_pack(std::span<const float> logits, std::size_t token,
                            PackedLogProbs& packed) noexcept;

 private:
  struct Normalizer {
    float max = 0;        // largest logit
    std::size_t top = 0;  // its index, the first if several tie
    double log_sum = 0;   // ln sum exp(logit - max)

    double log_total() const noexcept { return double{max} + log_sum; }
  };
  Normalizer normalize(std::span<const float> logits) noexcept;
  static TokenScore score_of(const Normalizer& normalizer, float logit) noexcept;

  const quant::RowKernels& kernels_;
  std::vector<float> scratch_;  // [vocabulary]
};

}  // namespace lockstep::evaluate
