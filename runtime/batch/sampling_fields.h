// The fields of a request that say how its answer is drawn, when it ends and what its row shows.
// Internal to runtime/batch.
#pragma once

#include "runtime/batch/json_fields.h"
#include "runtime/batch/request.h"

namespace lockstep::batch {

// Fills the answer's rules and truncate_prompt_tokens of `request`, whose row is known. Throws
// Refusal naming the field.
void parse_answer_rules(const Fields& fields, const RequestDefaults& defaults, Request& request);

}  // namespace lockstep::batch
