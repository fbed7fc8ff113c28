// Choosing the next token from logits. A pure function of logits, parameters, seed, draw number and
// the tokens before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/logprobs.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

// What is added to the logit of a token, -100 to 100. Exactly -100 bans the token.
struct TokenBias {
  TokenId token = kNoToken;
  float bias = 0.0f;

  bool operator==(const TokenBias&) const = default;
};

struct SamplingParams {
  static constexpr std::int32_t kNoLogprobs = -1;
  static constexpr std::int32_t kMaxLogprobs = 20;
  static constexpr float kStrongestBias = 100.0f;

  float temperature = 0.0f;  // 0: greedy
  std::int32_t top_k = 0;    // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  std::uint64_t seed = 0;
  // For tokens of the prompt and of the answer so far: a logit above 0 is divided by it, another
  // multiplied. 1: off.
  float repeat_penalty = 1.0f;
  // For tokens of the answer so far: subtracted once for each time that the token came, and once if
  // it came at all. 0: off.
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::vector<TokenBias> logit_bias = {};  // each token once
  std::size_t min_tokens = 0;              // no end token before so many others
  std::int32_t logprobs = kNoLogprobs;     // how many of the likeliest to report beside the chosen

  // Throws Error(usage) naming the field and its range: temperature in [0, 100], top_k >= 0, top_p
  // in (0, 1], min_p in [0, 1], repeat_penalty in (0, 10], frequency_penalty and presence_penalty
  // in [-2, 2], logit_bias in [-100, 100] and each token once, logprobs at most 20.
  void check() const;
};

// Of the model's own distribution, whatever the parameters made of it.
struct ChoiceLogprobs {
  double chosen = 0;
  // The likeliest tokens, in order; as many as asked for, or the whole vocabulary if that is less.
  // Valid until the next sample().
  std::span<const TokenLogprob> top = {};
};

struct Choice {
  TokenId token = kNoToken;
  std::optional<ChoiceLogprobs> logprobs = {};  // if the parameters ask for them
};

// One sequence's sampler. It remembers the tokens that its penalties need and may be moved at any
// time.
class Sampler {
 public:
  // `end_tokens` matter for min_tokens alone. Ids outside the vocabulary have no effect.
  explicit Sampler(const SamplingParams& params, std::span<const TokenId> prompt = {},
                   std::span<const TokenId> end_tokens = {});

  // Changes the logits by logit bias and bans, then by the penalties (repeat, frequency, presence).
  // Greedy: the largest, the smallest id on a tie. Else top-k, then top-p, then min-p, then
  // temperature, in the order and with the definitions of the public tools. Nothing if a logit is
  // NaN or +inf, or no token is left to choose. The token counts as generated.
  std::optional<Choice> sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    TokenId id;
    double weight;  // proportional to its probability, at the step under way
  };
  // A token whose logit may be changed.
  struct Edit {
    TokenId token = kNoToken;
    float bias = 0.0f;
    bool is_banned = false;
    bool is_end = false;
    bool is_in_prompt = false;
    std::uint32_t generated = 0;
    float logit = 0.0f;  // changed, at the step under way
  };
  struct Tops {
    float given = 0.0f;  // the model's largest logit
    TokenId token = kNoToken;
    float logit = 0.0f;  // of `token`: the largest after all changes
  };

  static bool before(const Candidate& a, const Candidate& b) noexcept;
  void list_edits(std::span<const TokenId> prompt, std::span<const TokenId> end_tokens);
  bool counts_tokens() const noexcept;
  float changed(const Edit& edit, float logit) const noexcept;
  std::optional<Tops> find_tops(std::span<const float> logits) noexcept;
  ChoiceLogprobs logprobs(std::span<const float> logits, float top, TokenId chosen);
  TokenId draw(std::span<const float> logits, const Tops& tops);
  void list_candidates(std::span<const float> logits);
  void keep_top_k();
  void keep_top_p(double top);
  void keep_min_p(double top);
  void remember(TokenId token);

  SamplingParams params_;
  std::uint64_t generated_ = 0;  // tokens so far, one draw each
  std::vector<Edit> edits_;      // ascending token ids
  std::vector<Candidate> candidates_;
  std::vector<TokenLogprob> top_logprobs_;
};

}  // namespace lockstep
