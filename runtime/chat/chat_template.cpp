// Rendering by family: a table of what a turn looks like, and a template belongs to a family if the
// turns it writes are that family's, character for character (see template_text.h). Templates are
// programs in Jinja; a row here covers the many that differ in code but not in what they write, and
// the rest are refused, since a prompt that is almost right gives answers that are quietly worse.
#include "runtime/chat/chat_template.h"

#include <fmt/format.h>

#include <optional>

#include "lockstep/error.h"
#include "runtime/chat/template_text.h"
#include "runtime/printable.h"

namespace lockstep {
namespace {

// A turn is role_open, the role, role_close, the content, turn_close.
struct ChatFamily {
  std::string_view name;
  std::string_view role_open;
  std::string_view role_close;
  std::string_view turn_close;

  std::string turn(std::string_view role, std::string_view content) const {
    return fmt::format("{}{}{}{}{}", role_open, role, role_close, content, turn_close);
  }
  std::string opening(std::string_view role) const {
    return fmt::format("{}{}{}", role_open, role, role_close);
  }
};

constexpr ChatFamily kFamilies[] = {
    {"ChatML", "<|im_start|>", "\n", "<|im_end|>\n"},
    {"role tags", "<|", "|>\n", "<|end|>\n"},
};

struct Recognised {
  const ChatFamily* family = nullptr;
  bool system = false;  // whether the template has a place for a system message
  std::optional<std::string> default_system;  // what it says if there is none
};

// A system turn that the template spells out itself.
std::optional<std::string> literal_system(const ChatFamily& family, const std::string& text) {
  const std::string opening = family.opening("system");
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
    at += opening.size();
    const std::size_t end = text.find(family.turn_close, at);
    if (end == std::string::npos) break;
    const std::string content = text.substr(at, end - at);
    constexpr char kMarks[] = {kRoleMark, kContentMark, kOtherMark};
    const bool computed = content.find_first_of(kMarks, 0, sizeof kMarks) != std::string::npos;
    if (!content.empty() && !computed) return content;
  }
  return std::nullopt;
}

Recognised recognise(std::string_view chat_template) {
  constexpr std::string_view kRole(&kRoleMark, 1);
  constexpr std::string_view kContent(&kContentMark, 1);
  const std::string text = template_text(chat_template);
  const auto writes = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  for (const ChatFamily& family : kFamilies) {
    const bool any_role = writes(family.turn(kRole, kContent));
    const bool any_turn = any_role || writes(family.turn("user", kContent));
    if (!any_turn || !writes(family.opening("assistant"))) continue;
    return {&family, any_role || writes(family.turn("system", kContent)),
            literal_system(family, text)};
  }
  throw Error(
      ErrorCode::bad_model,
      fmt::format("the chat template is not one of the known families (ChatML, role tags); it "
                  "starts \"{}\"",
                  printable(chat_template, 60)));
}

void check(const ChatMessage& message, std::size_t index, const Recognised& recognised) {
  const std::string& role = message.role;
  if (role != "system" && role != "user" && role != "assistant") {
    throw Error(ErrorCode::bad_input,
                fmt::format("message {} has the role '{}'; expected system, user or assistant",
                            index, printable(role)));
  }
  if (role == "system" && !recognised.system) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("message {} has the role 'system', for which the model's chat template has "
                    "no place",
                    index));
  }
}

}  // namespace

std::string render_chat(std::string_view chat_template, std::span<const ChatMessage> messages) {
  const Recognised recognised = recognise(chat_template);
  const ChatFamily& family = *recognised.family;
  if (messages.empty()) throw Error(ErrorCode::bad_input, "a chat needs at least one message");
  std::string prompt;
  if (recognised.default_system && messages.front().role != "system") {
    prompt += family.turn("system", *recognised.default_system);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check(messages[i], i, recognised);
    prompt += family.turn(messages[i].role, messages[i].content);
  }
  return prompt += family.opening("assistant");
}

}  // namespace lockstep
