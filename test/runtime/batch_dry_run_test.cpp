// The forecast of a job: the counts are those of the job itself, line by line.
#include "runtime/batch/dry_run.h"

#include <atomic>
#include <string>

#include "runtime/batch/job.h"
#include "runtime/batch/prompt.h"
#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/runtime/fake_step_model.h"
#include "test/runtime/silent_observer.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::FakeStepModel;
using lockstep::test::SilentObserver;
using lockstep::test::TempDir;

namespace {

constexpr std::size_t kContext = 64;

KvBlocks::Options cache(std::size_t blocks = 200, bool share = true) {
  return {1, kContext, blocks, FakeStepModel::kBlock, share};
}

JobForecast forecast(const std::string& text, const KvBlocks::Options& blocks = cache(),
                     const StopFlags& flags = {}, std::vector<std::size_t>* seen = nullptr) {
  const TempDir dir;
  InputFile input(dir.write("in", text));
  const InputSurvey survey = survey_input(input);
  const FakeStepModel model(kContext, 3, 40);
  LineSource lines(input);
  return forecast_job(model, lines, survey, {}, blocks, flags, [&](std::size_t done) {
    if (seen) seen->push_back(done);
  });
}

std::string request(const std::string& prompt, std::size_t max_tokens) {
  return R"({"prompt":")" + prompt + R"(","max_tokens":)" + std::to_string(max_tokens) + "}\n";
}

}  // namespace

TEST_CASE("a forecast counts tokens of prompts and, at most, of answers") {
  std::vector<std::size_t> seen;
  const JobForecast job =
      forecast(request("abc", 5) + "\n" + request("hello", 100), cache(), {}, &seen);
  CHECK(job.requests == 2);
  CHECK(job.errors == 0);
  CHECK(job.prompt_tokens == 8);
  CHECK(job.longest_prompt == 5);
  CHECK(job.answer_tokens == 5 + (kContext - 5));
  CHECK(job.shared_tokens == 0);
  CHECK(job.computed_tokens() == 8);
  CHECK(seen == std::vector<std::size_t>{1, 2});
  CHECK(forecast("\n \n").requests == 0);
}

TEST_CASE("a forecast knows the error rows, by code, and shows the first ones") {
  std::string text = request("ok", 1);
  for (int i = 0; i < 12; ++i) text += "{\n";
  text += request(std::string(kContext, 'x'), 1) + request("", 1);
  const JobForecast job = forecast(text);
  CHECK(job.requests == 1);
  CHECK(job.errors == 14);
  CHECK(job.error_codes.at("context_length_exceeded") == 1);
  CHECK(job.error_codes.at("empty_prompt") == 1);
  CHECK(job.error_codes.size() == 3);
  REQUIRE(job.first_errors.size() == JobForecast::kShownErrors);
  CHECK(job.first_errors.front().row.line == 2);
  CHECK(job.first_errors.back().row.line == 11);
}

TEST_CASE("a forecast tells what the cache would save") {
  const std::string common(40, 's');
  std::string text;
  for (const char c : {'a', 'b', 'c'}) text += request(common + c, 1);
  CHECK(forecast(text).shared_tokens == 80);
  CHECK(forecast(text, cache(200, false)).shared_tokens == 0);
  // What does not fit is forgotten before it can be shared.
  std::string apart;
  for (int round = 0; round < 2; ++round) {
    for (const char c : {'a', 'b', 'c', 'd'}) apart += request(std::string(40, c), 1);
  }
  CHECK(forecast(apart).shared_tokens == 4 * 39);
  CHECK(forecast(apart, cache(9)).shared_tokens == 0);
}

TEST_CASE("the job evaluates what was forecast") {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    const std::string beginning = i % 2 == 0 ? "" : std::string(24, 's');
    text += i % 7 == 3 ? "[]\n" : request(beginning + std::to_string(i * 7919), 1 + i % 9);
  }
  const JobForecast expected = forecast(text);
  const TempDir dir;
  InputFile input(dir.write("in", text));
  const InputSurvey survey = survey_input(input);
  FakeStepModel model(kContext, 3, 40);
  RowWriter output(dir.path() / "out");
  LineSource lines(input);
  SilentObserver silence;
  const std::atomic<bool> stop{false};
  const JobStats stats = run_job(model, lines, survey, output, {}, stop, silence);
  CHECK(stats.errors == expected.errors);
  CHECK(stats.rows == expected.requests + expected.errors);
  CHECK(stats.prompt_tokens + stats.cached_tokens == expected.prompt_tokens);
  CHECK(stats.output_tokens <= expected.answer_tokens);
  CHECK(stats.cached_tokens > 0);
  CHECK(expected.shared_tokens > 0);
}

TEST_CASE("two BOS tokens in front of a prompt are noticed") {
  CHECK(begins_with_two(std::vector<TokenId>{1, 1, 5}, 1));
  CHECK_FALSE(begins_with_two(std::vector<TokenId>{1, 5, 1}, 1));
  CHECK_FALSE(begins_with_two(std::vector<TokenId>{1}, 1));
  CHECK_FALSE(begins_with_two(std::vector<TokenId>{kNoToken, kNoToken}, kNoToken));
}

TEST_CASE("a forecast ends at a signal") {
  const std::atomic<bool> stop{true};
  StopFlags flags;
  flags.stop = &stop;
  try {
    forecast(request("abc", 5), cache(), flags);
    FAIL("went on");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::interrupted);
  }
}
