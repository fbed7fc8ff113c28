// From a prompt or chat messages to the token ids that are evaluated: the one place that decides
// about BOS.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::batch {

// Special tokens in the text are recognised and BOS is added if the model asks for it. An empty
// text becomes BOS alone, or nothing if the model has no BOS.
std::vector<TokenId> text_tokens(const Tokenizer& tokenizer, std::string_view text);

// The messages in the model's chat template. A BOS that the template writes itself is not doubled.
// Throws Error as render_chat does, and Error(bad_model) if there is no template.
std::vector<TokenId> chat_tokens(const Tokenizer& tokenizer, std::string_view chat_template,
                                 std::span<const ChatMessage> messages);

}  // namespace lockstep::batch
