// See prepare.h.
#include "runtime/batch/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::batch {

namespace {

// Leaves the last `keep` tokens, at least 1, and returns how many went. A BOS in front stays and
// counts among them: models answer badly without.
std::size_t cut(std::vector<TokenId>& prompt, std::size_t keep, TokenId bos) {
  if (prompt.size() <= keep) return 0;
  const std::size_t gone = prompt.size() - keep;
  const std::ptrdiff_t from = keep > 1 && bos != kNoToken && prompt.front() == bos ? 1 : 0;
  prompt.erase(prompt.begin() + from, prompt.begin() + from + static_cast<std::ptrdiff_t>(gone));
  return gone;
}

RequestError too_long(const RowIdentity& row, std::size_t tokens, std::size_t context,
                      bool truncate_prompt) {
  std::string message = fmt::format(
      "the prompt has {} tokens and needs room for at least 1 more, {} in all; the context "
      "holds {}",
      tokens, tokens + 1, context);
  if (truncate_prompt) {
    message += "; how much to cut is known only with max_tokens set to less than that";
  }
  return {row, 400, "context_length_exceeded", message};
}

}  // namespace

std::variant<Sequence, RequestError> prepare(const StepModel& model, Request& request,
                                             bool truncate_prompt) {
  Sequence sequence;
  try {
    sequence.prompt =
        request.prompt_ids.empty() ? model.encode(request) : std::move(request.prompt_ids);
  } catch (const Error& error) {
    return RequestError{request.row, 400, "invalid_request", error.what()};
  }
  std::vector<TokenId>& prompt = sequence.prompt;
  if (prompt.empty()) {
    return RequestError{request.row, 400, "empty_prompt",
                        "the prompt is empty and the model has no BOS token to start from"};
  }
  const std::size_t context = model.context();
  std::size_t truncated = 0;
  if (request.truncate_prompt_tokens != 0) {
    truncated += cut(prompt, request.truncate_prompt_tokens, model.bos());
  }
  if (truncate_prompt && request.max_tokens != 0 && request.max_tokens < context) {
    truncated += cut(prompt, context - request.max_tokens, model.bos());
  }
  if (prompt.size() + 1 > context) {
    return too_long(request.row, prompt.size(), context, truncate_prompt);
  }
  const std::size_t room = context - prompt.size();
  static_cast<AnswerRules&>(sequence) = static_cast<AnswerRules&&>(request);
  sequence.max_tokens = sequence.max_tokens == 0 ? room : std::min(room, sequence.max_tokens);
  sequence.truncated = truncated;
  return sequence;
}

}  // namespace lockstep::batch
