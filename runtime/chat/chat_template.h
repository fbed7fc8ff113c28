// Chat messages to prompt text. Recognises templates by what they do, never guesses: an unknown one
// is refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

struct ChatMessage {
  std::string role;
  std::string content;
};

// Renders `messages` with the model's `tokenizer.chat_template` text, followed by the opening of
// the assistant's answer. Throws Error(bad_model) for a template outside the known families,
// Error(bad_input) for messages that the template refuses (an unknown role, no messages).
std::string render_chat(std::string_view chat_template, std::span<const ChatMessage> messages);

}  // namespace lockstep
