// A program for chat_oracle_test.py: renders templates as the library does, one case per line.
//   in:  {"template": "...", "variables": {...}, "date": "2024-07-26"}      (date: optional)
//   out: {"text": "..."} or {"error": "...", "code": 65}
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/error.h"
#include "runtime/chat/jinja/json_values.h"
#include "runtime/chat/jinja/template.h"

namespace {

using namespace lockstep;
using nlohmann::ordered_json;

std::string render(const ordered_json& line) {
  const jinja::Template text(line.at("template").get<std::string>());
  jinja::Workspace workspace{jinja::Limits{}};
  jinja::Dict variables;
  for (const auto& [name, value] : line.at("variables").items()) {
    workspace.set(variables, workspace.text(name), jinja::from_json(workspace, value));
  }
  std::optional<jinja::Date> date;
  if (line.contains("date")) date = jinja::parse_date(line["date"].get<std::string>());
  return text.render(workspace, variables, date);
}

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    ordered_json result;
    try {
      result["text"] = render(ordered_json::parse(text));
    } catch (const Error& error) {
      result = {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
    }
    std::cout << result.dump() << "\n" << std::flush;
  }
}
