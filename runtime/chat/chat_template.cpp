// See chat_template.h.
#include "runtime/chat/chat_template.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"
#include "runtime/chat/chat_variables.h"
#include "runtime/chat/jinja/json_values.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep {

struct ChatTemplate::Parts {
  ChatEngine engine;
};

ChatRequest simple_chat(std::string_view user, std::optional<std::string_view> system) {
  OrderedJson messages = OrderedJson::array();
  const auto add = [&](const char* role, std::string_view content) {
    if (valid_utf8_prefix(content) != content.size()) {
      throw Error(ErrorCode::bad_input, fmt::format("the {} message is not valid UTF-8 at byte {}",
                                                    role, valid_utf8_prefix(content)));
    }
    messages.push_back({{"role", role}, {"content", content}});
  };
  if (system) add("system", *system);
  add("user", user);
  ChatRequest request;
  request.messages = messages.dump();
  return request;
}

std::string ChatEngine::run(const ChatVariables& given) const {
  jinja::Workspace workspace{jinja::Limits{}};
  jinja::Dict variables;
  const auto set = [&](std::string_view name, jinja::Value value) {
    workspace.set(variables, workspace.text(std::string(name)), value);
  };
  set("messages", jinja::from_json(workspace, given.messages));
  set("tools", jinja::from_json(workspace, given.tools));
  set("documents", jinja::Value());
  set("add_generation_prompt", jinja::Value(given.add_generation_prompt));
  set("bos_token", workspace.text(bos_token));
  set("eos_token", workspace.text(eos_token));
  for (const auto& [name, value] : given.extra.items()) {
    set(name, jinja::from_json(workspace, value));
  }
  return program.render(workspace, variables, date);
}

ChatTemplate::ChatTemplate(std::string_view source, const ChatTemplateOptions& options) {
  std::optional<jinja::Date> date;
  if (!options.date.empty()) {
    date = jinja::parse_date(options.date);
    if (!date) {
      throw Error(ErrorCode::usage, fmt::format("'{}' is no date: expected one like 2025-01-31",
                                                printable(options.date)));
    }
  }
  ChatEngine engine{jinja::Template(source), options.bos_token, options.eos_token, date};
  probe_forms(engine);
  parts_ = std::make_unique<const Parts>(Parts{std::move(engine)});
}

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

std::string ChatTemplate::render(const ChatRequest& request) const {
  const ChatEngine& engine = parts_->engine;
  const ChatVariables variables = prepare(engine, request);
  std::string text = engine.run(variables);
  check_nothing_lost(engine, variables, text);
  return text;
}

}  // namespace lockstep
