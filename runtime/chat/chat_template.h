// Chat messages to prompt text, with the Jinja template of the model (jinja/). What a request says
// must reach the prompt: a template that has no place for a part of it is a refusal, not a silent
// loss.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Beyond these a request is refused: levels of nesting, and members of one object.
inline constexpr int kMaxChatDepth = 64;
inline constexpr std::size_t kMaxChatMembers = 4096;

// Parts are JSON texts, as they stand in requests.
struct ChatRequest {
  // An array of messages, not empty. Each has a `role` (system, developer, user, assistant or tool)
  // and a `content`, a string; an assistant that calls tools may have null, or none. Other fields
  // (tool_calls, tool_call_id, name, reasoning_content, ...) are the template's to read.
  std::string messages;
  std::string tools;                  // an array, or empty
  std::string variables;              // an object: further variables of the template, or empty
  bool add_generation_prompt = true;  // end with the opening of the assistant's answer
};

// A user's message, after a system message if there is one. Throws Error(bad_input) for text that
// is not valid UTF-8.
ChatRequest simple_chat(std::string_view user, std::optional<std::string_view> system = {});

struct ChatTemplateOptions {
  std::string bos_token, eos_token;  // as text; empty if the model has none
  // "2025-01-31": the day that the template's strftime_now tells. Empty: there is no strftime_now;
  // templates that can do without take a date of their own, others fail. The clock is never asked:
  // the same request must give the same prompt tomorrow.
  std::string date;
};

class ChatTemplate {
 public:
  // Parses the template once. Throws Error(bad_model) with the line for one that is not valid or
  // uses what is not supported, Error(usage) for a date that is none.
  ChatTemplate(std::string_view source, const ChatTemplateOptions& options);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt. Throws Error(bad_input) for requests that are malformed, that the template refuses
  // (raise_exception), or of which it would leave out a message, a name, a tool, a call or a
  // variable; Error(bad_model) where a template does too much or needs what is not supported;
  // Error(usage) if it cannot do without a date. Thread-safe.
  std::string render(const ChatRequest& request) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace lockstep
