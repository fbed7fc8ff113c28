// The job around the scheduler: one row per line whatever happens, the check of ids, the files.
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/batch/job.h"
#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/runtime/fake_step_model.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::FakeStepModel;
using lockstep::test::TempDir;
using nlohmann::json;

namespace {

class Watcher final : public JobObserver {
 public:
  void on_answer(const RowIdentity&, const Finished&) override { ++answers; }
  void on_error(const RequestError&, const JobStats&) override { ++errors; }
  void on_step(const JobStats&) override {
    if (stop && ++steps == stop_after) stop->store(true);
  }
  std::size_t answers = 0, errors = 0, steps = 0, stop_after = 0;
  std::atomic<bool>* stop = nullptr;
};

struct Run {
  JobStats stats;
  std::string bytes;
  std::map<std::size_t, json> rows;  // by line
  std::size_t answers = 0, errors = 0;
};

Run run(const std::string& text, std::size_t slots = 3, std::size_t context = 64,
        std::size_t stop_after = 0, std::size_t max_batch = 40) {
  const TempDir dir;
  InputFile input(dir.write("in", text));
  const InputSurvey survey = survey_input(input);
  FakeStepModel model(context, slots, max_batch);
  Run result;
  std::atomic<bool> stop{false};
  Watcher watcher;
  watcher.stop = &stop;
  watcher.stop_after = stop_after;
  {
    RowWriter output(dir.path() / "out");
    LineSource source(input);
    result.stats = run_job(model, source, survey, output, {}, stop, watcher);
    output.close();
  }
  result.bytes = TempDir::read(dir.path() / "out");
  std::istringstream lines(result.bytes);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);  // throws for invalid UTF-8 too
    CHECK(result.rows.emplace(row.at("line").get<std::size_t>(), row).second);
  }
  result.answers = watcher.answers;
  result.errors = watcher.errors;
  return result;
}

std::string refusal(const std::string& text) {
  const TempDir dir;
  InputFile input(dir.write("in", text));
  try {
    survey_input(input);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    return error.what();
  }
  return "";
}

std::string many_lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += R"({"id":)" + std::to_string(i) + R"(,"prompt":")" + std::string(1 + i % 30, 'q') +
            std::to_string(i) + R"(","max_tokens":9})" + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("one row per non-blank line, errors among answers") {
  const Run job =
      run("{\"id\":\"a\",\"prompt\":\"Eone|\"}\n"
          "\n"
          "   \t\r\n"
          "[1,2]\n"
          "null\n"
          "{\"prompt\": \"cut\n"
          "{\"custom_id\":\"x\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\"}\n"
          "{\"id\":\"b\",\"prompt\":\"Etwo|\"}");
  CHECK(job.rows.size() == 6);
  CHECK(job.stats.total == 6);
  CHECK(job.stats.rows == 6);
  CHECK(job.stats.errors == 4);
  CHECK_FALSE(job.stats.interrupted);
  CHECK(job.answers == 2);
  CHECK(job.errors == 4);
  CHECK(job.rows.at(1) == json::parse(R"({"id":"a","line":1,"text":"one","finish_reason":"stop",
        "usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}})"));
  CHECK(job.rows.at(8).at("text") == "two");
  for (const std::size_t line : {4, 5, 6}) {
    CHECK(job.rows.at(line).at("error").at("code").is_string());
    CHECK(job.rows.at(line).at("id").is_null());
    CHECK(job.rows.at(line).size() == 3);
  }
  CHECK(job.rows.at(7) ==
        json::parse(R"({"id":"batch_req_7","custom_id":"x","response":{"status_code":400,
        "request_id":"req_7","body":{"error":{"message":"body: is missing",
        "type":"invalid_request_error",
        "param":null,"code":"invalid_request"}}},
        "error":{"code":"invalid_request","message":"body: is missing"},"line":7})"));
}

TEST_CASE("OpenAI rows have the shape of the batch format") {
  const Run job = run(
      R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"messages":[
          {"role":"user","content":"Ehi|"}]}})"
      "\n"
      R"({"custom_id":"t","method":"POST","url":"/v1/completions",)"
      R"("body":{"prompt":"Ehi|","max_tokens":1}})"
      "\n{\n");
  // The first request was written over two lines: both halves are broken lines of their own.
  CHECK(job.rows.size() == 4);
  CHECK(job.rows.at(3) ==
        json::parse(R"({"id":"batch_req_3","custom_id":"t","response":{"status_code":200,
        "request_id":"req_3","body":{"id":"cmpl-3","object":"text_completion","created":0,
        "model":"fake",
        "choices":[{"index":0,"text":"h","logprobs":null,"finish_reason":"length"}],
        "usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}},
        "error":null,"line":3})"));
  CHECK(job.rows.at(4).contains("response"));  // a broken line in an OpenAI file gets an OpenAI row

  const Run talk = run(R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions",)"
                       R"("body":{"messages":[{"role":"user","content":"Ehi|"}]}})");
  CHECK(talk.rows.at(1) ==
        json::parse(R"({"id":"batch_req_1","custom_id":"c","response":{"status_code":200,
        "request_id":"req_1","body":{"id":"chatcmpl-1","object":"chat.completion","created":0,
        "model":"fake",
        "choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null},
        "logprobs":null,"finish_reason":"stop"}],
        "usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}}},
        "error":null,"line":1})"));
}

TEST_CASE("errors found after parsing are rows too, and harm no neighbour") {
  const Run job =
      run("{\"prompt\":\"\"}\n"
          "{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}\n"
          "{\"custom_id\":\"n\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":\"NaN\"}}\n"
          "{\"prompt\":\"Eok|\"}\n");
  CHECK(job.stats.errors == 3);
  CHECK(job.stats.non_finite == 1);
  CHECK(job.rows.at(1).at("error").at("code") == "empty_prompt");
  CHECK(job.rows.at(2).at("error").at("message") == "no tools here");
  CHECK(job.rows.at(3).at("response").at("status_code") == 500);
  CHECK(job.rows.at(3).at("error").at("code") == "non_finite_logits");
  CHECK(job.rows.at(4).at("text") == "ok");
}

TEST_CASE("a prompt must leave room for an answer") {
  const auto prompt = [](std::size_t n) {
    return "{\"prompt\":\"" + std::string(n, 'U') + "\",\"max_tokens\":8}\n";
  };
  const Run job =
      run(prompt(10) + prompt(64) + prompt(65) + prompt(5000) + prompt(63) + prompt(60));
  CHECK(job.rows.at(1).at("usage").at("completion_tokens") == 8);
  for (const auto& [line, tokens] :
       std::map<std::size_t, std::string>{{2, "65"}, {3, "66"}, {4, "5001"}}) {
    const json& error = job.rows.at(line).at("error");
    CHECK(error.at("code") == "context_length_exceeded");
    CHECK(error.at("message").get<std::string>().find(tokens) != std::string::npos);
    CHECK(error.at("message").get<std::string>().find("holds 64") != std::string::npos);
  }
  CHECK(job.rows.at(5).at("usage").at("completion_tokens") == 1);
  CHECK(job.rows.at(6).at("usage").at("completion_tokens") == 4);
  CHECK(job.rows.at(6).at("finish_reason") == "length");
}

TEST_CASE("a cut character is replaced, never written") {
  const Run job = run("{\"prompt\":\"U\",\"max_tokens\":2}\n");
  CHECK(job.rows.at(1).at("text") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(job.rows.at(1).at("finish_reason") == "length");
}

TEST_CASE("rows do not depend on slots or batch size, and reruns are the same bytes") {
  const std::string text = many_lines(60);
  const Run alone = run(text, 1);
  CHECK(alone.rows.size() == 60);
  CHECK(run(text, 1).bytes == alone.bytes);
  for (const std::size_t slots : {4, 32}) {
    CHECK(run(text, slots).rows == alone.rows);
    CHECK(run(text, slots, 64, 0, 512).rows == alone.rows);
    CHECK(run(text, slots).bytes == run(text, slots).bytes);
  }
}

TEST_CASE("sampling follows the seed, the line and nothing else") {
  const std::string line = R"({"prompt":"random","temperature":5,"max_tokens":20)";
  const Run job =
      run(line + "}\n" + line + "}\n" + line + R"(,"seed":1})" + "\n" + line + R"(,"seed":1})");
  CHECK(job.rows.at(1).at("text") != job.rows.at(2).at("text"));
  CHECK(job.rows.at(3).at("text") == job.rows.at(4).at("text"));
  CHECK(run("\n" + line + "}\n", 1).rows.at(2).at("text") == job.rows.at(2).at("text"));
}

TEST_CASE("a row with an id draws the same in any file, at any place") {
  const auto line = [](const std::string& id) {
    return R"({"id":")" + id + R"(","prompt":"random","temperature":5,"max_tokens":20})" + "\n";
  };
  const Run job = run(line("a") + line("b") + line("c"));
  CHECK(job.rows.at(1).at("text") != job.rows.at(2).at("text"));
  const Run turned = run("\n" + line("c") + line("x") + line("b") + line("a"), 1);
  CHECK(turned.rows.at(5).at("text") == job.rows.at(1).at("text"));
  CHECK(turned.rows.at(4).at("text") == job.rows.at(2).at("text"));
  CHECK(turned.rows.at(2).at("text") == job.rows.at(3).at("text"));
}

TEST_CASE("log-probabilities, ids and penalties do not depend on slots or batch size") {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string more[] = {R"("logprobs":true,"top_logprobs":3)",
                                R"("temperature":2,"logprobs":0,"min_tokens":4)",
                                R"("frequency_penalty":2,"return_token_ids":true)",
                                R"("repeat_penalty":9,"temperature":1,"logit_bias":{"97":-100})",
                                R"("truncate_prompt_tokens":2,"return_token_ids":true)"};
    text += R"({"id":)" + std::to_string(i) + R"(,"prompt":"prompt)" + std::to_string(i) +
            R"(","max_tokens":9,)" + more[i % 5] + "}\n";
  }
  const Run alone = run(text, 1);
  CHECK(alone.stats.errors == 0);
  const json& first = alone.rows.at(1);
  const std::size_t end_tokens = first.at("finish_reason") == "stop" ? 1 : 0;
  CHECK(first.at("logprobs").size() + end_tokens == first.at("usage").at("completion_tokens"));
  CHECK(alone.rows.at(3).at("prompt_token_ids").size() == 7);
  CHECK(alone.rows.at(5).at("usage").at("prompt_tokens_truncated") == 5);
  for (const std::size_t slots : {4, 32}) {
    CHECK(run(text, slots).rows == alone.rows);
    CHECK(run(text, slots, 64, 0, 512).rows == alone.rows);
  }
}

TEST_CASE("a stop keeps finished rows and says that it stopped") {
  const Run job = run(many_lines(60), 2, 64, 20);
  CHECK(job.stats.interrupted);
  CHECK(job.rows.size() == job.stats.rows);
  CHECK(job.stats.rows > 0);
  CHECK(job.stats.rows < 60);
  const Run whole = run(many_lines(60), 2);
  CHECK(whole.bytes.compare(0, job.bytes.size(), job.bytes) == 0);
}

TEST_CASE("an empty input is an empty output") {
  CHECK(run("").bytes.empty());
  CHECK(run("\n\n  \n").stats.total == 0);
}

TEST_CASE("line ends, byte order mark and a missing last line end") {
  const Run job =
      run("\xef\xbb\xbf{\"prompt\":\"Ea|\"}\r\n{\"prompt\":\"Eb|\"}\r\n{\"prompt\":\"Ec|\"}");
  CHECK(job.stats.errors == 0);
  CHECK(job.rows.at(3).at("text") == "c");
}

TEST_CASE("an endless line is one error row") {
  const std::string longest = "{\"prompt\":\"" + std::string(InputFile::kMaxLine, 'x') + "\"}\n";
  const Run job = run("{\"prompt\":\"Ea|\"}\n" + longest + "{\"prompt\":\"Eb|\"}\n");
  CHECK(job.rows.at(2).at("error").at("code") == "line_too_long");
  CHECK(job.rows.at(3).at("text") == "b");
}

TEST_CASE("duplicate and missing ids are refused by line") {
  CHECK(refusal("{\"custom_id\":\"a\",\"body\":{}}\n{\"custom_id\":\"b\",\"body\":{}}\n\n"
                "{\"custom_id\":\"c\",\"body\":{}}\n{\"custom_id\":\"b\",\"body\":{}}\n")
            .find("lines 2 and 5") != std::string::npos);
  CHECK(refusal("{\"id\":1}\n{\"id\":\"1\"}\n") == "");
  CHECK(refusal("{\"id\":1}\n{\"custom_id\":\"x\",\"body\":{}}\n{\"id\":1}\n")
            .find("lines 1 and 3") != std::string::npos);
  CHECK(refusal("{\"id\":\"a\"}\n{\"custom_id\":\"a\",\"body\":{}}\n").find("lines 1 and 2") !=
        std::string::npos);
  CHECK(refusal("{\"prompt\":\"a\"}\n{\"prompt\":\"a\"}\n") == "");
  CHECK(refusal("{\"prompt\":\"a\"}\n{\"body\":{}}\n").find("line 2 has no custom_id") !=
        std::string::npos);
  CHECK(refusal("{\"id\":\"\\u0061\"}\n{\"id\":\"a\"}\n").find("lines 1 and 2") !=
        std::string::npos);
}

TEST_CASE("input must be a readable regular file") {
  const TempDir dir;
  for (const std::string name : {"missing", "."}) {
    try {
      InputFile input(dir.path() / name);
      FAIL("opened " << name);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::no_input);
    }
  }
  const std::filesystem::path pipe = dir.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_AS(InputFile(pipe), Error);
}

TEST_CASE("lines appended after opening are not part of the job") {
  const TempDir dir;
  const std::filesystem::path path = dir.write("in", "{\"prompt\":\"a\"}\n");
  InputFile input(path);
  std::ofstream(path, std::ios::app) << "{\"prompt\":\"b\"}\n";
  CHECK(survey_input(input).lines == 1);
}

TEST_CASE("an existing output is never touched") {
  const TempDir dir;
  const std::filesystem::path path = dir.write("out", "precious\n");
  try {
    RowWriter writer(path);
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::cannot_create);
  }
  CHECK(TempDir::read(path) == "precious\n");
  CHECK_THROWS_AS(RowWriter(dir.path() / "no" / "such" / "folder"), Error);
}
