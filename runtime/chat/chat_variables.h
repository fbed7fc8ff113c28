// What a chat template is given: the messages and tools of a request in the form that templates
// are written for. Internal to runtime/chat.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/chat/chat_template.h"
#include "runtime/chat/jinja/template.h"

namespace lockstep {

using OrderedJson = nlohmann::ordered_json;

struct ChatVariables {
  OrderedJson messages = OrderedJson::array();
  OrderedJson tools;  // null without tools
  OrderedJson extra = OrderedJson::object();
  bool add_generation_prompt = true;
};

// A parsed template with all that does not change from request to request.
struct ChatEngine {
  jinja::Template program;
  std::string bos_token, eos_token;
  std::optional<jinja::Date> date;
  // How the template wants what the public API leaves open (see probe_forms).
  bool arguments_as_text = false;  // of a tool call: the JSON text, not an object
  bool null_as_text = false;       // for a content of null: ""

  // Throws Error as Template::render does.
  std::string run(const ChatVariables& variables) const;
};

// Renders a made-up tool call to find the forms that the template writes whole.
void probe_forms(ChatEngine& engine);

// Parses a request and puts its messages into the template's forms. Throws Error(bad_input) for
// what is malformed and for fields that the template never reads.
ChatVariables prepare(const ChatEngine& engine, const ChatRequest& request);

// Throws Error(bad_input) naming the first part of the request that is not in `text`, what the
// template wrote. Renders once more, with marks in place of everything that has to come through.
void check_nothing_lost(const ChatEngine& engine, const ChatVariables& variables,
                        const std::string& text);

}  // namespace lockstep
