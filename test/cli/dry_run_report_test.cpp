// What a dry run tells: the arithmetic, and the words.
#include "runtime/cli/dry_run_report.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace lockstep;
using namespace lockstep::cli;

namespace {

DryRun some_run() {
  DryRun run;
  run.job.requests = 1200;
  run.job.prompt_tokens = 240000;
  run.job.shared_tokens = 60000;
  run.job.answer_tokens = 96000;
  run.job.longest_prompt = 900;
  run.rates = {300, 80, 32};
  run.session.slots = 32;
  run.session.context = 2048;
  run.weight_bytes = 1 << 20;
  run.load_seconds = 1.5;
  return run;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the time is that of prompts that are computed and of all answers") {
  const DryRun run = some_run();
  CHECK(forecast_seconds(run.job, run.rates) == Approx(180000 / 300.0 + 96000 / 80.0));
  CHECK(forecast_seconds(run.job, {}) == 0);
  CHECK(has(dry_run_text(run), "at most about 30 min 00 s, and 2 s to load"));
}

TEST_CASE("means are of the requests") {
  const batch::JobForecast job = some_run().job;
  CHECK(mean_depth(job) == (240000 + 48000) / 1200);
  CHECK(mean_depth({}) == 1);
  CHECK(answering_together(job, 32, 1 << 20) == 32);
  CHECK(answering_together(job, 5000, 1 << 20) == 1200);
  // Each holds (180000 + 96000) / 1200 = 230 positions of its own.
  CHECK(answering_together(job, 32, 2300) == 10);
  CHECK(answering_together(job, 32, 1) == 1);
  CHECK(answering_together({}, 32, 100) == 1);
}

TEST_CASE("the text names the counts, and the errors with their lines") {
  DryRun run = some_run();
  CHECK(has(dry_run_text(run), "requests        1,200\n"));
  CHECK(
      has(dry_run_text(run), "240,000 (longest prompt 900), about 60,000 of them from the cache"));
  CHECK(has(dry_run_text(run), "at most 96,000"));
  CHECK_FALSE(has(dry_run_text(run), "cut prompts"));
  run.job.truncated = 3;
  run.job.errors = 2;
  run.job.error_codes = {{"empty_prompt", 2}};
  run.job.first_errors = {
      {{7, batch::RowFormat::plain, "null"}, 400, "empty_prompt", "nothing\x1b"}};
  const std::string text = dry_run_text(run);
  CHECK(has(text, "error rows      2\n  empty_prompt                2\n"));
  CHECK(has(text, "  line 7: nothing"));
  CHECK_FALSE(has(text, "\x1b"));
  CHECK(has(text, "  ...\n"));
  CHECK(has(text, "cut prompts     3\n"));
}

TEST_CASE("the JSON has the same figures") {
  const DryRun run = some_run();
  const auto json = nlohmann::json::parse(dry_run_json(run));
  CHECK(json.at("requests") == 1200);
  CHECK(json.at("cached_tokens") == 60000);
  CHECK(json.at("answer_tokens_at_most") == 96000);
  CHECK(json.at("seconds_at_most").get<double>() == Approx(1800));
  CHECK(json.at("slots") == 32);
}
