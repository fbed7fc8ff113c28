// The fields of a chat request: messages, tools and what else its template reads. Internal to
// runtime/batch.
#pragma once

#include <string_view>

#include "runtime/batch/json_fields.h"
#include "runtime/chat/chat_template.h"

namespace lockstep::batch {

// `fields`: the object that holds `messages`. `line`: the whole line that it was parsed from, since
// the order of keys counts in what a template writes; `in_body`: whether the object is its `body`.
// Contents in parts of text become one string. Throws Refusal.
ChatRequest parse_chat(const Fields& fields, std::string_view line, bool in_body);

// Throws Refusal for fields of a chat that ask for something, beside a prompt.
void refuse_chat_fields(const Fields& fields);

}  // namespace lockstep::batch
