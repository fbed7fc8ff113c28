// Templates come out of model files, so they may be anything. Thousands of mutations of real ones,
// and noise: each must render or be refused, in bounded work, and never crash.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/jinja/json_values.h"
#include "runtime/chat/jinja/template.h"
#include "support/catch.h"

namespace {

using namespace lockstep;
using namespace lockstep::jinja;

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "test" / "runtime" / "chat_templates";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

const nlohmann::ordered_json& variables() {
  static const auto json = nlohmann::ordered_json::parse(R"({
    "messages": [
      {"role": "system", "content": "Be kind."},
      {"role": "user", "content": "Wie geht's? \ud83d\ude42 <b>"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "call00001", "type": "function",
        "function": {"name": "clock", "arguments": {"zone": "CET", "n": 3}}}]},
      {"role": "tool", "name": "clock", "tool_call_id": "call00001", "content": "{\"t\": 1}"},
      {"role": "user", "content": "And now?"}],
    "tools": [{"type": "function", "function": {"name": "clock", "description": "The time",
      "parameters": {"type": "object", "properties": {"zone": {"type": "string", "enum": ["CET"]},
      "items": {"type": "array", "items": {"type": "integer"}}}, "required": ["zone"]}}}],
    "documents": [{"title": "T", "text": "D"}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  return json;
}

// Small, so that what never ends, ends soon.
Limits small_limits() {
  Limits limits;
  limits.steps = 20000;
  limits.bytes = std::uint64_t{4} << 20;
  limits.text_bytes = std::size_t{1} << 20;
  return limits;
}

struct Counts {
  int rendered = 0, refused = 0;
};

void survive(const std::string& text, Counts& counts) {
  try {
    const Template made(text);
    Workspace workspace(small_limits());
    Dict dict;
    for (const auto& [name, value] : variables().items()) {
      workspace.set(dict, workspace.text(name), from_json(workspace, value));
    }
    made.render(workspace, dict, Date{2024, 7, 26});
    ++counts.rendered;
  } catch (const Error& error) {
    // Whatever it was, it is one line that can be shown.
    const std::string what = error.what();
    REQUIRE_FALSE(what.empty());
    REQUIRE(what.find('\n') == std::string::npos);
    REQUIRE(what.size() < 2000);
    ++counts.refused;
  }
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> texts, unsigned seed)
      : texts_(std::move(texts)), random_(seed) {}

  std::string next() {
    std::string text = pick(texts_);
    for (std::size_t n = below(4) + 1; n > 0; --n) mutate(text);
    if (text.size() > 20000) text.resize(20000);
    return text;
  }

  std::string noise() {
    std::string text;
    for (std::size_t n = below(40) + 1; n > 0; --n) {
      text += below(4) == 0 ? std::string(1, static_cast<char>(below(256))) : pick(kPieces);
    }
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  template <typename List>
  std::string pick(const List& list) {
    return std::string(list[below(std::size(list))]);
  }
  std::size_t place(const std::string& text) { return below(text.size() + 1); }

  void mutate(std::string& text) {
    const std::size_t at = place(text);
    switch (below(7)) {
      case 0:
        text.insert(at, pick(kPieces));
        break;
      case 1:
        text.erase(at, below(30));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.insert(at, text.substr(place(text), below(200)));
        break;
      case 4: {  // the beginning of one and the end of another
        const std::string other = pick(texts_);
        text = text.substr(0, at) + other.substr(place(other));
        break;
      }
      case 5: {  // one name for another
        const std::size_t from = text.find_first_of("abcdefghijklmnopqrstuvwxyz", at);
        if (from == std::string::npos) break;
        const std::size_t to = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", from);
        text.replace(from, to == std::string::npos ? to : to - from, pick(kPieces));
        break;
      }
      default:
        text.resize(at);
    }
  }

  static constexpr const char* kPieces[] = {"{{",
                                            "}}",
                                            "{%",
                                            "%}",
                                            "{#",
                                            "#}",
                                            "{%-",
                                            "-%}",
                                            "{{-",
                                            "-}}",
                                            "{%+",
                                            "+%}",
                                            "(",
                                            ")",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            "'",
                                            "\"",
                                            "\\",
                                            "\\u12",
                                            "\\xff",
                                            "\n",
                                            "\r",
                                            "\t",
                                            " ",
                                            "\xC3\xA9",
                                            "\xF0\x9F\x99\x82",
                                            "\xED\xA0\x80",
                                            "\xff",
                                            "|",
                                            ".",
                                            ",",
                                            ":",
                                            "=",
                                            "==",
                                            "~",
                                            "+",
                                            "-",
                                            "*",
                                            "**",
                                            "/",
                                            "//",
                                            "%",
                                            "<",
                                            ">=",
                                            "0",
                                            "1",
                                            "-1",
                                            "9223372036854775807",
                                            "1e308",
                                            "0x",
                                            "1_0",
                                            "none",
                                            "true",
                                            "x",
                                            "messages",
                                            "tools",
                                            "loop",
                                            "loop.last",
                                            "loop.nextitem",
                                            "loop.previtem",
                                            "ns",
                                            "m",
                                            "caller",
                                            "varargs",
                                            "kwargs",
                                            "self",
                                            "not ",
                                            " in ",
                                            " is ",
                                            " and ",
                                            " or ",
                                            " if ",
                                            " else ",
                                            "|length",
                                            "|tojson",
                                            "|tojson(indent=2)",
                                            "|list",
                                            "|join",
                                            "|first",
                                            "|last",
                                            "|map('upper')",
                                            "|map(attribute='role')",
                                            "|selectattr('role','equalto','user')",
                                            "|sort",
                                            "|unique",
                                            "|reverse",
                                            "|batch(2)",
                                            "|slice(3)",
                                            "|replace('a','bb')",
                                            "|indent",
                                            "|trim",
                                            "|safe",
                                            "|e",
                                            "|string",
                                            "|int",
                                            "|float",
                                            "|round",
                                            "|default",
                                            "|dictsort",
                                            "|items",
                                            "|sum",
                                            "|min",
                                            "|title",
                                            "|format(1)",
                                            ".items()",
                                            ".split()",
                                            ".strip()",
                                            ".get('x')",
                                            ".keys()",
                                            ".format(1)",
                                            ".startswith('a')",
                                            ".join(messages)",
                                            "[0]",
                                            "[-1]",
                                            "[::-1]",
                                            "[1:]",
                                            "[9:0:-3]",
                                            "['role']",
                                            ".content",
                                            ".role",
                                            "* 99999999",
                                            "range(99999)",
                                            "namespace(a=1)",
                                            "dict(a=1)",
                                            "raise_exception('x')",
                                            "strftime_now('%d')",
                                            "{% for m in messages %}",
                                            "{% endfor %}",
                                            "{% if x %}",
                                            "{% elif y %}",
                                            "{% else %}",
                                            "{% endif %}",
                                            "{% set ns = namespace(a=1) %}",
                                            "{% set ns.a = ns %}",
                                            "{% set x = [x, x] %}",
                                            "{% set x %}",
                                            "{% endset %}",
                                            "{% macro m(a, b=1) %}",
                                            "{% endmacro %}",
                                            "{{ m(m) }}",
                                            "{% call m(1) %}",
                                            "{% endcall %}",
                                            "{% filter upper %}",
                                            "{% endfilter %}",
                                            "{% with a = 1 %}",
                                            "{% endwith %}",
                                            "{% break %}",
                                            "{% continue %}",
                                            "{% raw %}",
                                            "{% endraw %}",
                                            "{% generation %}",
                                            "{% endgeneration %}"};

  std::vector<std::string> texts_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("mutated templates render or are refused") {
  Mutator mutator(corpus(), 1);
  Counts counts;
  for (int i = 0; i < 40000; ++i) survive(mutator.next(), counts);
  // Neither outcome may be all there is, or the test would show nothing.
  CHECK(counts.rendered > 1000);
  CHECK(counts.refused > 1000);
}

TEST_CASE("noise renders or is refused") {
  Mutator mutator(corpus(), 2);
  Counts counts;
  for (int i = 0; i < 40000; ++i) survive(mutator.noise(), counts);
  CHECK(counts.rendered > 500);
  CHECK(counts.refused > 500);
}

TEST_CASE("every beginning of a template renders or is refused") {
  Counts counts;
  for (const std::string& text : corpus()) {
    for (std::size_t end = 0; end < text.size(); end += 13) survive(text.substr(0, end), counts);
    survive(text, counts);
  }
  CHECK(counts.refused > 500);
}

TEST_CASE("chats of mutated templates end in a prompt or an error") {
  Mutator mutator(corpus(), 3);
  ChatRequest request;
  request.messages = variables()["messages"].dump();
  request.tools = variables()["tools"].dump();
  int rendered = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    try {
      ChatTemplate(mutator.next(), {"<s>", "</s>", "2024-07-26"}).render(request);
      ++rendered;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(rendered + refused == 300);
  CHECK(rendered > 0);
}
