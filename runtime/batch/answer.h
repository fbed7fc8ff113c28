// One answer in the making: takes token after token from logits, until an end token, a stop string
// or the limit. It owns everything that an answer is made of (sampler, ids, text,
// log-probabilities) and may be moved between steps, so that whoever schedules sequences needs to
// know none of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/batch/step_model.h"
#include "runtime/sampler.h"

namespace lockstep::batch {

enum class FinishReason : std::uint8_t {
  stop,        // an end token or a stop string
  length,      // max_tokens or the end of the context
  non_finite,  // logits that no token can be chosen from
};

// The log-probabilities of the tokens whose bytes are in the text as a whole: neither an end token
// nor one that a stop string cut is among them.
struct AnswerLogprobs {
  std::vector<TokenLogprob> tokens;
  std::vector<TokenLogprob> top;  // the likeliest in place of each, tops_each after one another
  std::size_t tops_each = 0;

  std::span<const TokenLogprob> tops_of(std::size_t i) const noexcept {
    return std::span(top).subspan(i * tops_each, tops_each);
  }
};

struct Finished {
  std::uint64_t id = 0;  // of the sequence, as whoever schedules it counts
  FinishReason reason = FinishReason::stop;
  std::string text;  // bytes as the tokens gave them, cut before a stop string
  std::size_t prompt_tokens = 0;
  std::size_t output_tokens = 0;                // tokens generated, an end token included
  std::size_t truncated = 0;                    // tokens cut from the prompt before
  std::optional<AnswerLogprobs> logprobs = {};  // if asked for
  // If asked for: the ids that were evaluated and all that were generated.
  bool shows_ids = false;
  std::vector<TokenId> prompt_ids = {};
  std::vector<TokenId> output_ids = {};
};

class Answer {
 public:
  Answer(AnswerRules rules, std::span<const TokenId> prompt, const StepModel& model);

  // Takes the next token from its logits. Nothing while the answer goes on; then last() is to be
  // evaluated next. No token is taken if the reason is non_finite.
  std::optional<FinishReason> take(std::span<const float> logits, const StepModel& model);

  // All tokens so far: what a sequence that lost its place in the cache evaluates again.
  std::span<const TokenId> tokens() const noexcept { return tokens_; }
  TokenId last() const noexcept { return tokens_.back(); }

  // Hands out the answer, without id and prompt. Nothing may be taken afterwards.
  Finished finish(FinishReason reason);

 private:
  bool cut_at_stop(std::size_t fresh, const StepModel& model);

  AnswerRules rules_;
  Sampler sampler_;
  std::vector<TokenId> tokens_;
  std::string text_;
  std::optional<AnswerLogprobs> logprobs_;
};

}  // namespace lockstep::batch
