// Chats as a user runs them: another template, a date, tools, and what is said when a template has
// no place for something.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

constexpr const char* kPlain =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content|trim }}{% endfor %}";

std::string tokens_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  return outcome.out;
}

bool mentions(const Outcome& outcome, const std::string& text) {
  return outcome.err.find(text) != std::string::npos;
}

struct Job {
  Outcome outcome;
  bool has_output = false;
  std::map<std::size_t, json> rows;  // by line

  std::string error(std::size_t line) const { return rows.at(line).at("error").at("message"); }
};

Job run_job(const TempDir& dir, const std::string& lines, std::vector<std::string> options) {
  const std::filesystem::path output = dir.path() / "out.jsonl";
  std::vector<std::string> arguments = {
      "batch",        "--input", dir.write("in.jsonl", lines).string(), "--output", output.string(),
      "--max-tokens", "2"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  Job job;
  job.outcome = run(arguments);
  job.has_output = std::filesystem::exists(output);
  std::istringstream rows(job.has_output ? TempDir::read(output) : "");
  for (std::string row; std::getline(rows, row);) {
    const json parsed = json::parse(row);
    job.rows.emplace(parsed.at("line").get<std::size_t>(), parsed);
  }
  return job;
}

}  // namespace

TEST_CASE("a chat takes another template, whose BOS is not doubled") {
  const TempDir dir;
  const std::string file = dir.write("plain.jinja", kPlain).string();
  CHECK(tokens_of({"tokenize", "--chat", "--chat-template", file, " Hi "}) ==
        tokens_of({"tokenize", "<|user|>Hi"}));
  const Outcome answer = run({"generate", "--chat", "--chat-template", file, "--system", "Be kind.",
                              "--max-tokens", "3", "--ids", "Hi"});
  CHECK(answer.code == 0);
}

TEST_CASE("the date is what was given, on every day") {
  const TempDir dir;
  const std::string file =
      dir.write("date.jinja", "{{ strftime_now('%d %B %Y') }}: {{ messages[0].content }}").string();
  CHECK(tokens_of({"tokenize", "--chat", "--chat-template", file, "--date", "2025-01-31", "Hi"}) ==
        tokens_of({"tokenize", "31 January 2025: Hi"}));
  const Outcome without = run({"tokenize", "--chat", "--chat-template", file, "Hi"});
  CHECK(without.code == 64);
  CHECK(mentions(without, "set one with --date YYYY-MM-DD"));
  const Job job =
      run_job(dir, R"({"messages":[{"role":"user","content":"Hi"}]})", {"--chat-template", file});
  CHECK(job.outcome.code == 64);
  CHECK_FALSE(job.has_output);
}

TEST_CASE("wrong templates and dates end with the documented code") {
  const TempDir dir;
  const std::string plain = dir.write("plain.jinja", kPlain).string();
  const std::string odd = dir.write("odd.jinja", "a\n{{ messages|xmlattr }}").string();
  const std::string broken = dir.write("broken.jinja", "{% if x %}").string();
  const std::string missing = (dir.path() / "missing.jinja").string();
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{"tokenize", "--chat-template", plain, "x"}, 64},
      {{"tokenize", "--date", "2025-01-31", "x"}, 64},
      {{"generate", "--chat-template", plain, "x"}, 64},
      {{"tokenize", "--chat", "--date", "31.1.2025", "x"}, 64},
      {{"tokenize", "--chat", "--date", "2025-02-29", "x"}, 64},
      {{"tokenize", "--chat", "--chat-template", missing, "x"}, 66},
      {{"tokenize", "--chat", "--chat-template", odd, "x"}, 69},
      {{"tokenize", "--chat", "--chat-template", broken, "x"}, 69},
      {{"generate", "--chat", "--chat-template", odd, "x"}, 69},
      {{"tokenize", "--chat", "\xff"}, 65},
  };
  for (const auto& [arguments, code] : cases) {
    const Outcome outcome = run(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(outcome.messages().back().rfind("lockstep: error: ", 0) == 0);
  }
  CHECK(mentions(run({"tokenize", "--chat", "--chat-template", odd, "x"}),
                 "the chat template uses the filter 'xmlattr' at line 2, which is not supported"));
  const Job job =
      run_job(dir, R"({"messages":[{"role":"user","content":"Hi"}]})", {"--chat-template", odd});
  CHECK(job.outcome.code == 69);
  CHECK_FALSE(job.has_output);
  // A job without chats does not need it.
  CHECK(run_job(dir, R"({"prompt":"Once"})", {"--chat-template", odd}).outcome.code == 0);
}

TEST_CASE("rows of a job use tools and variables, or say that the template has no place for them") {
  const TempDir dir;
  const std::string file =
      dir.write("tools.jinja",
                "{% if tools %}{{ tools|tojson }}{% endif %}{% for m in messages %}"
                "{% if m.role == 'system' %}{{ raise_exception('No systems here') }}{% endif %}"
                "<|{{ m.role }}|>{{ m.content }}"
                "{% for c in m.tool_calls or [] %}{{ c.function|tojson }}{% endfor %}"
                "{% endfor %}{{ 'loud' if loud }}")
          .string();
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  const std::string lines =
      "{" + hi + "}\n" + "{" + hi + R"(,"tools":[{"type":"function","function":{"name":"f"}}]})" +
      "\n" + "{" + hi + R"(,"chat_template_kwargs":{"loud":true}})" + "\n" +
      R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,)" +
      R"("tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},)" +
      R"({"role":"tool","tool_call_id":"1","content":"r"}]})" + "\n" + "{" + hi +
      R"(,"chat_template_kwargs":{"quiet":true}})" + "\n" +
      R"({"messages":[{"role":"system","content":"S"}]})" + "\n";
  const Job job = run_job(dir, lines, {"--chat-template", file});
  CHECK(job.outcome.code == 1);
  REQUIRE(job.rows.size() == 6);
  const auto prompt = [&](std::size_t line) {
    return job.rows.at(line).at("usage").at("prompt_tokens").get<int>();
  };
  CHECK(prompt(2) > prompt(1));
  CHECK(prompt(3) > prompt(1));
  CHECK(prompt(4) > prompt(1));
  CHECK(job.error(5) == "the model's chat template has no variable 'quiet'");
  CHECK(job.error(6) == "the chat template refuses the messages: No systems here");

  const Job own = run_job(TempDir(), lines, {});
  CHECK(own.error(2) == "the model's chat template has no place for tools");
}
