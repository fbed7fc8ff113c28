// Whether all that a request says reaches the prompt. Templates drop things without a word: a
// system message in a template that knows user and assistant alone, the text beside a tool call.
// So the conversation is rendered once more with a number of its own in place of every text, and
// each number has to come out.
#include <fmt/format.h>

#include <vector>

#include "lockstep/error.h"
#include "runtime/chat/chat_variables.h"
#include "runtime/printable.h"

namespace lockstep {
namespace {

// Digits, which neither trimming, case nor JSON changes, and too many to be there by chance.
class Marks {
 public:
  // A new mark; `loss` says what is lost if it does not come out, `original` what it stands for.
  std::string add(std::string loss, std::string original) {
    marks_.push_back(
        {fmt::format("730518{:012}264", marks_.size()), std::move(loss), std::move(original)});
    return marks_.back().text;
  }

  struct Mark {
    std::string text, loss, original;
  };
  const std::vector<Mark>& all() const noexcept { return marks_; }

 private:
  std::vector<Mark> marks_;
};

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

std::string no_place(std::size_t index, std::string_view what) {
  return fmt::format("message {} has {}, for which the model's chat template has no place", index,
                     what);
}

void mark_calls(OrderedJson& message, std::size_t index, Marks& marks) {
  for (OrderedJson& call : message["tool_calls"]) {
    OrderedJson& function = call["function"];
    if (function.contains("name") && function["name"].is_string()) {
      const std::string name = function["name"];
      function["name"] =
          marks.add(no_place(index, fmt::format("a call of '{}'", printable(name))), name);
    }
    if (!function.contains("arguments") || !function["arguments"].is_object()) continue;
    for (const auto& [key, value] : function["arguments"].items()) {
      if (!value.is_string() || is_blank(value)) continue;
      const std::string original = value;
      value = marks.add(no_place(index, fmt::format("an argument '{}'", printable(key))), original);
    }
  }
}

void mark_message(OrderedJson& message, std::size_t index, Marks& marks) {
  const std::string role = message["role"];
  if (message["content"].is_string() && !is_blank(message["content"])) {
    const std::string original = message["content"];
    const bool beside_calls = message.contains("tool_calls");
    const std::string what = beside_calls ? std::string("a content beside tool calls")
                                          : fmt::format("the role '{}'", role);
    message["content"] = marks.add(no_place(index, what), original);
  }
  // A tool's message names what the call named before.
  if (role != "tool" && message.contains("name") && message["name"].is_string()) {
    const std::string original = message["name"];
    message["name"] = marks.add(no_place(index, "a name"), original);
  }
  if (message.contains("tool_calls")) mark_calls(message, index, marks);
}

void mark_tools(OrderedJson& tools, Marks& marks) {
  for (OrderedJson& tool : tools) {
    if (!tool.is_object()) continue;
    OrderedJson& described =
        tool.contains("function") && tool["function"].is_object() ? tool["function"] : tool;
    if (!described.contains("name") || !described["name"].is_string()) continue;
    const std::string original = described["name"];
    described["name"] = marks.add(
        fmt::format("the model's chat template leaves out the tool '{}'", printable(original)),
        original);
  }
}

// Text as it may stand in a prompt: trimmed, or inside JSON.
bool appears(const std::string& text, const std::string& original) {
  const std::size_t begin = original.find_first_not_of(" \t\r\n\v\f");
  const std::size_t end = original.find_last_not_of(" \t\r\n\v\f");
  const std::string trimmed = original.substr(begin, end - begin + 1);
  if (text.find(trimmed) != std::string::npos) return true;
  const std::string json = OrderedJson(trimmed).dump();
  return text.find(json.substr(1, json.size() - 2)) != std::string::npos;
}

}  // namespace

void check_nothing_lost(const ChatEngine& engine, const ChatVariables& variables,
                        const std::string& text) {
  ChatVariables marked = variables;
  Marks marks;
  for (std::size_t i = 0; i < marked.messages.size(); ++i) {
    mark_message(marked.messages[i], i, marks);
  }
  mark_tools(marked.tools, marks);
  std::optional<std::string> rendered;
  try {
    rendered = engine.run(marked);
  } catch (const Error&) {
    // A template that looks into the texts may refuse numbers: then the texts themselves are
    // looked for.
  }
  for (const Marks::Mark& mark : marks.all()) {
    const bool there = rendered ? rendered->find(mark.text) != std::string::npos
                                : is_blank(mark.original) || appears(text, mark.original);
    if (!there) throw Error(ErrorCode::bad_input, mark.loss);
  }
}

}  // namespace lockstep
