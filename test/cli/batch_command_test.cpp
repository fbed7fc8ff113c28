// `lockstep batch` as a user runs it, on the embedded model.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

constexpr const char* kOwl = "Tell me a story about an owl who lost a lantern.";

std::string chat_line(const std::string& id, const std::string& content,
                      const std::string& more = "") {
  return R"({"custom_id":")" + id +
         R"(","method":"POST","url":"/v1/chat/completions","body":{"messages":)" +
         R"([{"role":"user","content":")" + content + "\"}]" + more + "}}\n";
}

std::string plain_line(const std::string& prompt, const std::string& more = "") {
  return R"({"prompt":")" + prompt + "\"" + more + "}\n";
}

// Requests of all kinds, short enough for a debug build.
std::string mixed_lines(std::size_t count) {
  const std::vector<std::string> animals = {"owl", "fox", "bear", "pony", "goat", "badger", "dog"};
  const std::vector<std::string> things = {"lantern", "kite", "drum", "bell", "wagon"};
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string request = "Tell me a story about a " + animals[i % animals.size()] +
                                " who lost a " + things[i % things.size()] + ".";
    if (i % 3 == 0) text += chat_line("row-" + std::to_string(i), request, ",\"max_tokens\":20");
    if (i % 3 == 1)
      text += plain_line("Once upon a time", ",\"max_tokens\":" + std::to_string(1 + i));
    if (i % 3 == 2) text += plain_line("There was once", ",\"temperature\":1,\"max_tokens\":12");
  }
  return text;
}

struct Job {
  Outcome outcome;
  std::string bytes;
  std::map<std::size_t, json> rows;  // by line
  bool has_output = false;
};

Job run_batch(const std::string& lines, const std::vector<std::string>& options = {},
              Invocation how = {}) {
  const TempDir dir;
  const std::filesystem::path output = dir.path() / "out.jsonl";
  how.arguments = {"batch", "--input", dir.write("in.jsonl", lines).string(), "--output",
                   output.string()};
  how.arguments.insert(how.arguments.end(), options.begin(), options.end());
  Job job;
  job.outcome = run(how);
  INFO(job.outcome.err);
  CHECK_FALSE(job.outcome.timed_out);
  CHECK(job.outcome.out.empty());
  job.has_output = std::filesystem::exists(output);
  job.bytes = TempDir::read(output);
  std::istringstream rows(job.bytes);
  for (std::string row; std::getline(rows, row);) {
    const json parsed = json::parse(row);
    CHECK(job.rows.emplace(parsed.at("line").get<std::size_t>(), parsed).second);
  }
  return job;
}

std::vector<std::string> sorted_rows(const Job& job) {
  std::vector<std::string> rows;
  std::istringstream stream(job.bytes);
  for (std::string row; std::getline(stream, row);) rows.push_back(row);
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool mentions(const Outcome& outcome, const std::string& text) {
  return outcome.err.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("asked about an owl and a lantern, the model tells about an owl and a lantern") {
  const Job job =
      run_batch(chat_line("owl", kOwl) + plain_line("Once upon a time", ",\"id\":\"p\""));
  INFO(job.bytes);
  CHECK(job.outcome.code == 0);
  REQUIRE(job.rows.size() == 2);
  const json& response = job.rows.at(1).at("response");
  CHECK(job.rows.at(1).at("custom_id") == "owl");
  CHECK(job.rows.at(1).at("error").is_null());
  CHECK(response.at("status_code") == 200);
  const json& choice = response.at("body").at("choices").at(0);
  const std::string story = choice.at("message").at("content");
  CHECK(story.find("owl") != std::string::npos);
  CHECK(story.find("lantern") != std::string::npos);
  CHECK(choice.at("finish_reason") == "stop");
  CHECK(job.rows.at(2).at("id") == "p");
  CHECK_FALSE(job.rows.at(2).at("text").get<std::string>().empty());
  CHECK(mentions(job.outcome, "2 of 2 rows"));
}

TEST_CASE("bad lines are error rows, blank ones are skipped, the exit code says so") {
  const Job job = run_batch(plain_line("Once", ",\"max_tokens\":3") +
                            "\n   \n[1,2]\nnull\n{\"prompt\": \"cut\n" +
                            R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions"})" +
                            "\n" + plain_line("There", ",\"max_tokens\":3"));
  CHECK(job.outcome.code == 1);
  CHECK(job.rows.size() == 6);
  for (const std::size_t line : {4, 5, 6, 7}) CHECK(job.rows.at(line).at("error").is_object());
  for (const std::size_t line : {1, 8})
    CHECK(job.rows.at(line).at("usage").at("completion_tokens") == 3);
  CHECK(mentions(job.outcome, "4 error rows"));
}

TEST_CASE("a duplicate id is refused before any compute") {
  const Job job = run_batch(chat_line("a", "x") + chat_line("b", "x") + chat_line("c", "x") +
                            chat_line("d", "x") + chat_line("b", "y"));
  CHECK(job.outcome.code == 65);
  CHECK(mentions(job.outcome, "lines 2 and 5"));
  CHECK_FALSE(job.has_output);
  CHECK(job.outcome.messages().size() == 1);
}

TEST_CASE("a prompt that does not fit is an error row with both numbers") {
  // <|user|> is one token, and BOS comes on top.
  const auto line = [](std::size_t tokens) {
    std::string prompt;
    for (std::size_t i = 1; i < tokens; ++i) prompt += "<|user|>";
    return plain_line(prompt);
  };
  const Job job =
      run_batch(line(10) + line(64) + line(65) + line(5000), {"--ctx", "64", "--max-tokens", "8"});
  CHECK(job.outcome.code == 1);
  REQUIRE(job.rows.size() == 4);
  CHECK(job.rows.at(1).at("usage").at("prompt_tokens") == 10);
  for (const auto& [number, tokens] :
       std::map<std::size_t, std::string>{{2, "64"}, {3, "65"}, {4, "5000"}}) {
    const std::string message = job.rows.at(number).at("error").at("message");
    CHECK(message.find(tokens + " tokens") != std::string::npos);
    CHECK(message.find("holds 64") != std::string::npos);
  }
}

TEST_CASE("an existing output is refused and untouched") {
  const TempDir dir;
  const std::string output = dir.write("out.jsonl", "precious\n").string();
  const std::string input = dir.write("in.jsonl", plain_line("Once")).string();
  const Outcome outcome = run({"batch", "-i", input, "-o", output});
  CHECK(outcome.code == 73);
  CHECK(TempDir::read(output) == "precious\n");
  const Outcome summary = run({"batch", "-i", input, "-o", output + "2", "--summary", output});
  CHECK(summary.code == 73);
  CHECK(TempDir::read(output) == "precious\n");
  CHECK_FALSE(std::filesystem::exists(output + "2"));
}

TEST_CASE("rows are the same bytes for any slots and threads") {
  const std::string lines = mixed_lines(18);
  const Job first = run_batch(lines, {"--threads", "1", "--slots", "1"});
  CHECK(first.outcome.code == 0);
  CHECK(first.rows.size() == 18);
  for (const char* slots : {"4", "32"}) {
    CHECK(sorted_rows(run_batch(lines, {"--threads", "1", "--slots", slots})) ==
          sorted_rows(first));
  }
  for (const char* threads : {"2", "3", "4"}) {
    CHECK(sorted_rows(run_batch(lines, {"--threads", threads, "--slots", "5"})) ==
          sorted_rows(first));
  }
  CHECK(run_batch(lines, {"--threads", "2", "--slots", "1"}).bytes == first.bytes);
  CHECK(sorted_rows(run_batch(lines, {"--isa", "scalar", "--slots", "7"})) == sorted_rows(first));
}

TEST_CASE("fewer threads granted than asked for: the same rows and a warning") {
  const std::string lines = mixed_lines(6);
  const std::vector<std::string> expected = sorted_rows(run_batch(lines, {"--threads", "1"}));
  Invocation limited;
  limited.environment = {{"OMP_THREAD_LIMIT", "1"}};
  const Job one = run_batch(lines, {"--threads", "4"}, limited);
  CHECK(one.outcome.code == 0);
  CHECK(sorted_rows(one) == expected);
  CHECK(mentions(one.outcome, "lockstep: warning: "));
  CHECK(mentions(one.outcome, "OpenMP granted 1"));

  const TempDir dir;
  Invocation dynamic;
  dynamic.environment = {{"OMP_DYNAMIC", "true"}};
  const std::string summary_path = (dir.path() / "summary.json").string();
  const Job adjusted = run_batch(lines, {"--threads", "4", "--summary", summary_path}, dynamic);
  CHECK(adjusted.outcome.code == 0);
  CHECK(sorted_rows(adjusted) == expected);
  const json summary = json::parse(TempDir::read(summary_path));
  if (summary.at("threads") < 4) CHECK(mentions(adjusted.outcome, "lockstep: warning: "));
}

TEST_CASE("an affinity mask of one processor gives one thread, and says so") {
  const std::string lines = mixed_lines(3);
  Invocation narrow;
  narrow.one_processor = true;
  const Job alone = run_batch(lines, {}, narrow);
  CHECK(alone.outcome.code == 0);
  CHECK(mentions(alone.outcome, "1 thread: "));
  const Job crowded = run_batch(lines, {"--threads", "4"}, narrow);
  CHECK(crowded.outcome.code == 0);
  CHECK(mentions(crowded.outcome, "lockstep: warning: "));
  CHECK(sorted_rows(crowded) == sorted_rows(alone));
}

TEST_CASE("a full disk ends the job with whole rows only") {
  Invocation small;
  small.file_bytes = 2000;  // libomp makes a file of 1024 bytes under the same limit
  const Job job = run_batch(mixed_lines(30), {"--slots", "2"}, small);
  CHECK(job.outcome.code == 74);
  CHECK(mentions(job.outcome, "cannot write"));
  CHECK(job.rows.size() >= 1);
  CHECK(job.bytes.size() <= 2000);
  CHECK(job.bytes.back() == '\n');
}

TEST_CASE("a signal stops the job and keeps the finished rows") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const TempDir dir;
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += plain_line("Once upon a time", ",\"max_tokens\":200");
  const std::filesystem::path output = dir.path() / "out";
  Invocation job;
  job.arguments = {"batch",   "-i", dir.write("in", lines).string(), "-o", output.string(),
                   "--slots", "2"};
  job.meanwhile = [&](pid_t child) {
    std::error_code error;
    for (int i = 0; i < 10000; ++i) {
      const auto bytes = std::filesystem::file_size(output, error);
      if (!error && bytes > 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(child, signal);
  };
  const Outcome outcome = run(job);
  INFO(outcome.err);
  CHECK(outcome.code == 75);
  const std::string bytes = TempDir::read(output);
  REQUIRE_FALSE(bytes.empty());
  CHECK(bytes.back() == '\n');
  std::istringstream rows(bytes);
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) CHECK(json::parse(row).contains("text"));
  CHECK(count < 5000);
  CHECK(mentions(outcome, std::to_string(count) + " of 5000 rows"));
}

TEST_CASE("progress, answers and summary go to stderr") {
  const TempDir dir;
  const std::string summary_path = (dir.path() / "summary.json").string();
  const Job job =
      run_batch(chat_line("owl", kOwl) + "{}\n" + plain_line("Once", ",\"max_tokens\":4"),
                {"--show", "--interval", "0", "--summary", summary_path});
  CHECK(job.outcome.code == 1);
  CHECK(mentions(job.outcome, "lantern"));
  CHECK(mentions(job.outcome, "--- line 2\nerror: "));
  CHECK(mentions(job.outcome, "/3 rows"));
  CHECK(mentions(job.outcome, "ETA"));
  CHECK(mentions(job.outcome, "GB/s"));
  const json summary = json::parse(TempDir::read(summary_path));
  CHECK(summary.at("rows") == 3);
  CHECK(summary.at("error_rows") == 1);
  CHECK(summary.at("output_tokens").get<std::size_t>() == 4 + job.rows.at(1)
                                                                  .at("response")
                                                                  .at("body")
                                                                  .at("usage")
                                                                  .at("completion_tokens")
                                                                  .get<std::size_t>());
  CHECK(summary.at("weight_bytes_read") > 0);
  CHECK(summary.at("prompt_step_seconds") > 0);
  CHECK(summary.at("answer_step_seconds") > 0);
  CHECK(summary.at("step_seconds").get<double>() ==
        Approx(summary.at("prompt_step_seconds").get<double>() +
               summary.at("answer_step_seconds").get<double>() +
               summary.at("mixed_step_seconds").get<double>()));
  CHECK(summary.at("doubled_bos") == 0);
  CHECK(summary.at("interrupted") == false);
}

TEST_CASE("a BOS token that is doubled is told of once, and its rows are counted") {
  const TempDir dir;
  const std::string summary = (dir.path() / "summary.json").string();
  std::string lines;
  for (int i = 0; i < 3; ++i) lines += plain_line("<s>Once upon a time", ",\"max_tokens\":2");
  const Job job =
      run_batch(lines + plain_line("Once", ",\"max_tokens\":2"), {"--summary", summary});
  CHECK(job.outcome.code == 0);
  std::size_t told = 0;
  for (const std::string& line : job.outcome.messages()) {
    if (line.find("begins with two BOS tokens") != std::string::npos) ++told;
  }
  CHECK(told == 1);
  CHECK(json::parse(TempDir::read(summary)).at("doubled_bos") == 3);
}

TEST_CASE("progress is shown while there are error rows alone") {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "{}\n";
  const Job job = run_batch(lines, {"--interval", "0"});
  CHECK(job.outcome.code == 1);
  CHECK(mentions(job.outcome, "lockstep: 20/40 rows (20 errors), "));
}
