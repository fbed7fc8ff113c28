// See answer.h.
#include "runtime/batch/answer.h"

#include <algorithm>
#include <utility>

namespace lockstep::batch {

namespace {

std::span<const TokenId> end_tokens(const AnswerRules& rules, const StepModel& model) {
  return rules.ignore_eos ? std::span<const TokenId>() : model.end_tokens();
}

struct StopMatch {
  std::size_t begin = std::string::npos;
  std::size_t size = 0;
};

// The earliest stop string in `text` that ends in its last `fresh` bytes, of several at one place
// the shortest.
StopMatch find_stop(const std::string& text, std::size_t fresh,
                    const std::vector<std::string>& stops) {
  StopMatch first;
  if (fresh == 0) return first;
  for (const std::string& stop : stops) {
    const std::size_t window = std::min(text.size(), fresh + stop.size() - 1);
    const std::size_t at = text.find(stop, text.size() - window);
    if (at < first.begin || (at == first.begin && stop.size() < first.size)) {
      first = {at, stop.size()};
    }
  }
  return first;
}

}  // namespace

Answer::Answer(AnswerRules rules, std::span<const TokenId> prompt, const StepModel& model)
    : rules_(std::move(rules)), sampler_(rules_.sampling, prompt, end_tokens(rules_, model)) {
  if (rules_.sampling.logprobs >= 0) logprobs_.emplace();
}

std::optional<FinishReason> Answer::take(std::span<const float> logits, const StepModel& model) {
  const std::optional<Choice> choice = sampler_.sample(logits);
  if (!choice) return FinishReason::non_finite;
  tokens_.push_back(choice->token);
  if (!rules_.ignore_eos && model.ends_generation(choice->token)) return FinishReason::stop;
  const std::string piece = model.piece(choice->token);
  text_ += piece;
  if (choice->logprobs) {
    const std::span<const TokenLogprob> top = choice->logprobs->top;
    logprobs_->tokens.push_back({choice->token, choice->logprobs->chosen});
    logprobs_->top.insert(logprobs_->top.end(), top.begin(), top.end());
    logprobs_->tops_each = top.size();
  }
  if (cut_at_stop(piece.size(), model)) return FinishReason::stop;
  if (tokens_.size() >= rules_.max_tokens) return FinishReason::length;
  return std::nullopt;
}

// True if a stop string is complete. It counts from the token on that makes min_tokens full.
bool Answer::cut_at_stop(std::size_t fresh, const StepModel& model) {
  if (tokens_.size() < rules_.sampling.min_tokens) return false;
  const StopMatch stop = find_stop(text_, fresh, rules_.stop);
  if (stop.begin == std::string::npos) return false;
  const std::size_t kept = stop.begin + (rules_.include_stop ? stop.size : 0);
  std::size_t end = text_.size();
  while (logprobs_ && end > kept) {
    end -= model.piece(logprobs_->tokens.back().token).size();
    logprobs_->tokens.pop_back();
    logprobs_->top.resize(logprobs_->tokens.size() * logprobs_->tops_each);
  }
  text_.resize(kept);
  return true;
}

Finished Answer::finish(FinishReason reason) {
  Finished result;
  result.reason = reason;
  result.output_tokens = tokens_.size();
  result.truncated = rules_.truncated;
  result.text = std::move(text_);
  result.logprobs = std::move(logprobs_);
  result.shows_ids = rules_.token_ids;
  if (rules_.token_ids) result.output_ids = std::move(tokens_);
  return result;
}

}  // namespace lockstep::batch
