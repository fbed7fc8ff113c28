// From a prompt or chat messages to the token ids that are evaluated: the one place that decides
// about BOS.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::batch {

// Special tokens in the text are recognised and BOS is added if the model asks for it. An empty
// text becomes BOS alone, or nothing if the model has no BOS.
std::vector<TokenId> text_tokens(const Tokenizer& tokenizer, std::string_view text);

// A prompt with two BOS tokens in front: the text has one, and the tokenizer adds another. It is
// answered as it stands, and mostly worse than its writer expects.
bool begins_with_two(std::span<const TokenId> prompt, TokenId bos) noexcept;

// The chat template of a model, or the one that takes its place, with the model's BOS and EOS.
// `date` as in ChatTemplateOptions. Throws Error as ChatTemplate's constructor, and
// Error(bad_model) if there is no template.
ChatTemplate load_chat_template(const Tokenizer& tokenizer, std::string_view source,
                                const std::string& date);

// The chat as its template writes it. A BOS that the template writes itself is not doubled. Throws
// Error as ChatTemplate::render does.
std::vector<TokenId> chat_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const ChatRequest& request);

}  // namespace lockstep::batch
