// From a request to a sequence that fits into the context, or to the row that says why not.
#pragma once

#include <variant>

#include "runtime/batch/request.h"
#include "runtime/batch/scheduler.h"
#include "runtime/batch/step_model.h"

namespace lockstep::batch {

// A prompt is cut only if the request asks for it (truncate_prompt_tokens), or if
// `truncate_prompt` and the request's max_tokens leave no room for all of it: then its first tokens
// go, but for a BOS, and Sequence::truncated says how many. `request` loses its contents, not its
// row.
std::variant<Sequence, RequestError> prepare(const StepModel& model, Request& request,
                                             bool truncate_prompt);

}  // namespace lockstep::batch
