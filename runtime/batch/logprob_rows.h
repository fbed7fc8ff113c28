// Log-probabilities as output rows show them, in the shapes of the OpenAI API. Internal to
// runtime/batch.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/batch/answer.h"
#include "runtime/batch/step_model.h"

namespace lockstep::batch {

// Of chat completions and plain lines: an array with token, logprob, bytes and top_logprobs for
// each token. `token` is text, with U+FFFD for bytes that are no whole character; `bytes` are
// exact, and null for a token that stands for none, whose name is then in `token`.
nlohmann::ordered_json logprob_entries(const AnswerLogprobs& logprobs, const StepModel& model);

// Of completions: the arrays tokens, token_logprobs, top_logprobs and text_offset (in characters of
// the text). A token that is no whole characters is written as bytes:\xe2\x80. top_logprobs are
// objects from token to log-probability that hold the chosen token too; of two tokens with the same
// text they hold the likelier one.
nlohmann::ordered_json completion_logprobs(const AnswerLogprobs& logprobs, const StepModel& model);

}  // namespace lockstep::batch
