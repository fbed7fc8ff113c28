// See chat_request.h. Checked here is what the public API says of a request; whether the model's
// template has a place for it, the template is asked when the prompt is made.
#include "runtime/batch/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/batch/request.h"

namespace lockstep::batch {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
constexpr std::array<std::string_view, 3> kOrdered = {"messages", "tools", "chat_template_kwargs"};

// The fields of a chat as the line has them, keys in order. Other fields are left out. Finding a
// key takes longer the more there are, hence the limit. The line is known to be valid JSON, nested
// no deeper than kMaxJsonDepth.
ordered_json ordered_fields(std::string_view line, bool in_body) {
  const int level = in_body ? 2 : 1;  // of the object's own keys
  bool fits = true;
  bool wanted = false;                                   // the value that is being read
  std::array<std::size_t, kMaxJsonDepth + 2> members{};  // of the object at each depth
  const auto keep = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    using Event = ordered_json::parse_event_t;
    if (event == Event::object_start) members[static_cast<std::size_t>(depth) + 1] = 0;
    if (event != Event::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth < level) {
      wanted = key == "body";
    } else if (depth == level) {
      wanted = std::find(kOrdered.begin(), kOrdered.end(), key) != kOrdered.end();
    } else if (wanted) {
      fits = fits && ++members[static_cast<std::size_t>(depth)] <= kMaxChatMembers;
      return fits;
    }
    return wanted;
  };
  ordered_json object = ordered_json::parse(line.begin(), line.end(), keep);
  if (!fits) {
    throw Refusal("invalid_request",
                  fmt::format("an object of a chat has more than {} members", kMaxChatMembers));
  }
  return in_body ? std::move(object["body"]) : object;
}

std::string joined_parts(const Fields& message, const json& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const json& part = parts[i];
    const std::string key = fmt::format("content[{}]", i);
    if (!part.is_object()) message.refuse(key, "must be an object, not " + describe(part));
    const Fields fields(part, message.name(key) + ".");
    if (fields.string("type") != "text") fields.refuse("type", "only \"text\" is supported");
    const auto part_text = fields.string("text");
    if (!part_text) fields.refuse("text", "is missing");
    text += *part_text;
  }
  return text;
}

// Null for the content that a message with tool calls need not have.
ordered_json content_of(const Fields& message, bool has_calls) {
  const json* content = message.find("content");
  if (!content && has_calls) return nullptr;
  if (!content) message.refuse("content", "is missing");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    message.refuse("content",
                   "must be a string or an array of text parts, not " + describe(*content));
  }
  return joined_parts(message, *content);
}

// Whether the message has tool calls. They must be calls of functions.
bool check_calls(const Fields& message) {
  const json* calls = message.find("tool_calls");
  if (!calls) return false;
  if (!calls->is_array()) {
    message.refuse("tool_calls", "must be an array of calls, not " + describe(*calls));
  }
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const json& call = (*calls)[i];
    const std::string key = fmt::format("tool_calls[{}]", i);
    if (!call.is_object()) message.refuse(key, "must be an object, not " + describe(call));
    const Fields call_fields(call, message.name(key) + ".");
    const json* function = call_fields.find("function");
    if (!function || !function->is_object()) call_fields.refuse("function", "must be an object");
    const Fields function_fields(*function, call_fields.name("function") + ".");
    if (!function_fields.string("name")) function_fields.refuse("name", "is missing");
    const json* arguments = function_fields.find("arguments");
    if (arguments && !arguments->is_string() && !arguments->is_object()) {
      function_fields.refuse("arguments",
                             "must be JSON text or an object, not " + describe(*arguments));
    }
  }
  return !calls->empty();
}

void check_message(const Fields& message) {
  const auto role = message.string("role");
  if (!role) message.refuse("role", "is missing");
  if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) {
    message.refuse("role", fmt::format("must be one of {}", fmt::join(kRoles, ", ")));
  }
  message.string("name");
  for (const char* key : {"function_call", "audio", "refusal"}) {
    if (message.find(key)) message.refuse(key, "is not supported");
  }
}

std::string messages_of(const Fields& fields, ordered_json& ordered) {
  const json* messages = fields.find("messages");
  if (!messages) fields.refuse("messages", "is missing");
  if (!messages->is_array()) {
    fields.refuse("messages", "must be an array of messages, not " + describe(*messages));
  }
  if (messages->empty()) fields.refuse("messages", "must not be empty");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const json& message = (*messages)[i];
    const std::string key = fmt::format("messages[{}]", i);
    if (!message.is_object()) fields.refuse(key, "must be an object, not " + describe(message));
    const Fields message_fields(message, fields.name(key) + ".");
    check_message(message_fields);
    ordered["messages"][i]["content"] = content_of(message_fields, check_calls(message_fields));
  }
  return ordered["messages"].dump();
}

// Empty if there are none, or if the request wants none of them called.
std::string tools_of(const Fields& fields, const ordered_json& ordered) {
  const json* choice = fields.find("tool_choice");
  if (choice && *choice != "auto" && *choice != "none") {
    fields.refuse("tool_choice", "must be \"auto\" or \"none\": no call can be forced");
  }
  const json* tools = fields.find("tools");
  if (!tools) return {};
  if (!tools->is_array()) fields.refuse("tools", "must be an array, not " + describe(*tools));
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const json& tool = (*tools)[i];
    const std::string key = fmt::format("tools[{}]", i);
    if (!tool.is_object()) fields.refuse(key, "must be an object, not " + describe(tool));
    const Fields tool_fields(tool, fields.name(key) + ".");
    if (tool_fields.string("type") != "function") {
      tool_fields.refuse("type", "only \"function\" is supported");
    }
    const json* function = tool_fields.find("function");
    if (!function || !function->is_object()) tool_fields.refuse("function", "must be an object");
    const Fields function_fields(*function, tool_fields.name("function") + ".");
    if (!function_fields.string("name")) function_fields.refuse("name", "is missing");
  }
  if (tools->empty() || (choice && *choice == "none")) return {};
  return ordered["tools"].dump();
}

}  // namespace

ChatRequest parse_chat(const Fields& fields, std::string_view line, bool in_body) {
  ordered_json ordered = ordered_fields(line, in_body);
  ChatRequest request;
  request.messages = messages_of(fields, ordered);
  request.tools = tools_of(fields, ordered);
  if (const json* variables = fields.find("chat_template_kwargs")) {
    if (!variables->is_object()) {
      fields.refuse("chat_template_kwargs", "must be an object, not " + describe(*variables));
    }
    request.variables = ordered["chat_template_kwargs"].dump();
  }
  if (const json* opening = fields.find("add_generation_prompt")) {
    if (!opening->is_boolean()) {
      fields.refuse("add_generation_prompt", "must be true or false, not " + describe(*opening));
    }
    request.add_generation_prompt = opening->get<bool>();
  }
  const json* goes_on = fields.find("continue_final_message");
  if (goes_on && *goes_on != false) fields.refuse("continue_final_message", "is not supported");
  if (fields.find("chat_template")) {
    fields.refuse("chat_template", "is not supported (a job has one template)");
  }
  if (fields.find("documents")) {
    fields.refuse("documents", "is not supported (chat_template_kwargs may hold them)");
  }
  return request;
}

void refuse_chat_fields(const Fields& fields) {
  for (const char* key : {"tools", "chat_template_kwargs"}) {
    const json* value = fields.find(key);
    if (value && !value->empty()) fields.refuse(key, "is not supported beside a prompt");
  }
}

}  // namespace lockstep::batch
