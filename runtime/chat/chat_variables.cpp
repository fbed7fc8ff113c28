// From a request to what its template reads. Templates differ in what they take for granted where
// the public API leaves a choice; those choices are made here, by what the template does.
#include "runtime/chat/chat_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/error.h"
#include "runtime/printable.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kOwnVariables = {
    "messages", "tools", "add_generation_prompt", "bos_token", "eos_token"};
constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::bad_input, what); }

// JSON of a type. Nested no deeper than is safe to copy, and with no object so large that the
// linear search for its keys would take long; a part that breaks a rule is dropped, and then the
// whole is refused.
OrderedJson parsed(const std::string& text, OrderedJson::value_t type, std::string_view what) {
  bool fits = true;
  std::array<std::size_t, kMaxChatDepth + 2> members{};  // of the object at each depth
  const auto check = [&](int depth, OrderedJson::parse_event_t event, OrderedJson&) {
    using Event = OrderedJson::parse_event_t;
    const auto level = static_cast<std::size_t>(depth);
    fits = fits && depth <= kMaxChatDepth;
    if (fits && event == Event::object_start) members[level + 1] = 0;
    if (fits && event == Event::key) fits = ++members[level] <= kMaxChatMembers;
    return fits;
  };
  const OrderedJson json = OrderedJson::parse(text, check, false);
  if (!fits) {
    refuse(
        fmt::format("the {} of a chat are nested deeper than {} levels or have an object of more "
                    "than {} members",
                    what, kMaxChatDepth, kMaxChatMembers));
  }
  if (json.type() != type) refuse(fmt::format("the {} of a chat are not valid", what));
  return json;
}

// A tool call's arguments come as JSON text; most templates write them as an object.
void shape_arguments(const ChatEngine& engine, OrderedJson& message, std::size_t index) {
  for (OrderedJson& call : message["tool_calls"]) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) {
      refuse(fmt::format("message {} has a tool call without a function", index));
    }
    const auto at = call["function"].find("arguments");
    if (at == call["function"].end()) continue;
    if (engine.arguments_as_text) {
      if (!at->is_string()) *at = at->dump();
    } else if (at->is_string()) {
      OrderedJson object = OrderedJson::parse(at->get<std::string>(), nullptr, false);
      if (object.is_object()) *at = std::move(object);
    }
  }
}

void shape_message(const ChatEngine& engine, OrderedJson& message, std::size_t index) {
  if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
    refuse(fmt::format("message {} has no role", index));
  }
  const std::string role = message["role"];
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    refuse(fmt::format(
        "message {} has the role '{}'; expected system, developer, user, assistant or tool", index,
        printable(role)));
  }
  // The newer name for the same thing.
  if (role == "developer" && !engine.program.mentions("developer")) message["role"] = "system";
  const auto calls = message.find("tool_calls");
  if (calls != message.end() && (calls->is_null() || (calls->is_array() && calls->empty()))) {
    message.erase("tool_calls");
  }
  const bool has_calls = message.contains("tool_calls");
  if (has_calls) {
    if (!message["tool_calls"].is_array()) {
      refuse(fmt::format("message {} has tool_calls that are no array", index));
    }
    if (!engine.program.mentions("tool_calls")) {
      refuse(fmt::format(
          "message {} has tool calls, for which the model's chat template has no place", index));
    }
    shape_arguments(engine, message, index);
  }
  const auto content = message.find("content");
  const bool none = content == message.end() || content->is_null();
  if (none && !has_calls) refuse(fmt::format("message {} has no content", index));
  if (!none && !content->is_string()) {
    refuse(fmt::format("message {} has a content that is no string", index));
  }
  if (none) message["content"] = engine.null_as_text ? OrderedJson("") : OrderedJson();
}

void check_extra(const ChatEngine& engine, const OrderedJson& extra) {
  for (const auto& [name, value] : extra.items()) {
    if (std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end()) {
      refuse(fmt::format("the variable '{}' cannot be given to the chat template", name));
    }
    if (!engine.program.reads(name)) {
      refuse(fmt::format("the model's chat template has no variable '{}'", printable(name)));
    }
  }
}

// How often Python's none was written into a text.
std::size_t count_none(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find("None"); at != std::string::npos;
       at = text.find("None", at + 4)) {
    ++count;
  }
  return count;
}

// A conversation with a tool call, with or without the tool's answer behind it.
ChatVariables tool_conversation(OrderedJson content, OrderedJson arguments, bool answered) {
  ChatVariables variables;
  const OrderedJson function = {{"name", "probe"}, {"arguments", std::move(arguments)}};
  const OrderedJson call = {{"id", "probe0001"}, {"type", "function"}, {"function", function}};
  variables.messages.push_back({{"role", "user"}, {"content", "question"}});
  variables.messages.push_back({{"role", "assistant"},
                                {"content", std::move(content)},
                                {"tool_calls", OrderedJson::array({call})}});
  if (answered) {
    variables.messages.push_back({{"role", "tool"},
                                  {"name", "probe"},
                                  {"tool_call_id", "probe0001"},
                                  {"content", "answer"}});
  }
  const OrderedJson schema = {{"type", "object"},
                              {"properties", {{"key", {{"type", "string"}}}}},
                              {"required", OrderedJson::array({"key"})}};
  const OrderedJson described = {
      {"name", "probe"}, {"description", "probe"}, {"parameters", schema}};
  variables.tools = OrderedJson::array({{{"type", "function"}, {"function", described}}});
  return variables;
}

// What the template makes of a conversation; nothing if it refuses it.
std::optional<std::string> attempt(const ChatEngine& engine, const ChatVariables& variables) {
  try {
    return engine.run(variables);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void probe_forms(ChatEngine& engine) {
  if (!engine.program.mentions("tool_calls")) return;
  const OrderedJson object = {{"key", "needle"}};
  const std::string text = object.dump(-1, ' ', false);
  for (const bool answered : {true, false}) {
    const auto with_object = attempt(engine, tool_conversation("", object, answered));
    const auto with_text = attempt(engine, tool_conversation("", text, answered));
    if (!with_object && !with_text) continue;
    const bool object_works = with_object && with_object->find("needle") != std::string::npos &&
                              with_object->find("{'key': 'needle'}") == std::string::npos;
    const bool text_works = with_text && with_text->find(text) != std::string::npos;
    engine.arguments_as_text = !object_works && text_works;
    const OrderedJson arguments = engine.arguments_as_text ? OrderedJson(text) : object;
    const auto with_null = attempt(engine, tool_conversation(nullptr, arguments, answered));
    const auto& with_empty = engine.arguments_as_text ? with_text : with_object;
    engine.null_as_text =
        with_empty && (!with_null || count_none(*with_null) > count_none(*with_empty));
    return;
  }
}

ChatVariables prepare(const ChatEngine& engine, const ChatRequest& request) {
  ChatVariables variables;
  variables.add_generation_prompt = request.add_generation_prompt;
  variables.messages = parsed(request.messages, OrderedJson::value_t::array, "messages");
  if (variables.messages.empty()) refuse("a chat needs at least one message");
  for (std::size_t i = 0; i < variables.messages.size(); ++i) {
    shape_message(engine, variables.messages[i], i);
  }
  if (!request.tools.empty()) {
    variables.tools = parsed(request.tools, OrderedJson::value_t::array, "tools");
    if (variables.tools.empty()) variables.tools = nullptr;
  }
  if (!variables.tools.is_null() && !engine.program.reads("tools")) {
    refuse("the model's chat template has no place for tools");
  }
  if (!request.variables.empty()) {
    variables.extra = parsed(request.variables, OrderedJson::value_t::object, "variables");
  }
  check_extra(engine, variables.extra);
  return variables;
}

}  // namespace lockstep
