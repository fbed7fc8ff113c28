// Any bytes as a chat template: it renders a conversation or is refused with Error, within the
// limits.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lockstep/error.h"
#include "runtime/chat/jinja/json_values.h"
#include "runtime/chat/jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  static const auto variables = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Wie geht's?"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
       "function": {"name": "f", "arguments": {"a": "b", "n": 3}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  jinja::Limits limits;
  limits.steps = 20000;
  limits.bytes = std::uint64_t{4} << 20;
  limits.text_bytes = std::size_t{1} << 20;
  try {
    const jinja::Template made(std::string_view(reinterpret_cast<const char*>(data), size));
    jinja::Workspace workspace(limits);
    jinja::Dict dict;
    for (const auto& [name, value] : variables.items()) {
      workspace.set(dict, workspace.text(name), jinja::from_json(workspace, value));
    }
    if (made.render(workspace, dict, jinja::Date{2024, 7, 26}).size() > limits.text_bytes) {
      std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
