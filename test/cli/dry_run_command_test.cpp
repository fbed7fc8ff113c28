// `lockstep batch --dry-run`: every check of the real job, its counts, and not a byte written.
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

json estimate(const BatchFolder& job, std::vector<std::string> options = {}, int code = 0) {
  options.insert(options.end(), {"--dry-run", "--json"});
  const Outcome outcome = job.run(options);
  INFO(outcome.err);
  REQUIRE(outcome.code == code);
  return json::parse(outcome.out);
}

const std::string kMixed = requests(40) + "{}\n" + R"({"prompt":"x","max_tokens":0})" + "\n" +
                           R"({"messages":[{"role":"user","content":"Tell me a story."}]})" + "\n";

}  // namespace

TEST_CASE("a dry run writes nothing and counts what the job then does") {
  const BatchFolder job(kMixed);
  const json before = estimate(job, {}, 1);
  CHECK(files_in(job.dir.path()) == std::set<std::string>{"in.jsonl"});
  const std::string summary = (job.dir.path() / "summary.json").string();
  REQUIRE(job.run({"--summary", summary}).code == 1);
  const json after = json::parse(TempDir::read(summary));
  CHECK(before.at("requests").get<int>() + before.at("error_rows").get<int>() == after.at("rows"));
  CHECK(before.at("error_rows") == after.at("error_rows"));
  CHECK(before.at("error_codes").at("invalid_request") == 2);
  CHECK(before.at("prompt_tokens").get<int>() ==
        after.at("prompt_tokens").get<int>() + after.at("cached_tokens").get<int>());
  CHECK(before.at("answer_tokens_at_most") >= after.at("output_tokens"));
  CHECK(before.at("slots") == after.at("slots"));
  CHECK(before.at("context") == after.at("context"));
  CHECK(before.at("cache_bytes") == after.at("cache_bytes"));
  CHECK(before.at("model_bytes") == after.at("model_bytes"));
  CHECK(before.at("seconds_at_most") > 0);
}

TEST_CASE("a dry run needs no output, and says the same for people") {
  const BatchFolder job(kMixed);
  const Outcome outcome = run({"batch", "-i", job.input.string(), "--dry-run"});
  INFO(outcome.err << outcome.out);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("requests        41\nerror rows      2\n") == 0);
  CHECK(outcome.out.find("  line 41: ") != std::string::npos);
  CHECK(outcome.out.find("time            at most about ") != std::string::npos);
  CHECK(mentions(outcome, "memory: "));
  CHECK(files_in(job.dir.path()) == std::set<std::string>{"in.jsonl"});
}

TEST_CASE("a dry run refuses what the job would refuse") {
  const BatchFolder job(requests(3));
  job.dir.write("out.jsonl", "");
  CHECK(job.run({"--dry-run"}).code == 73);
  CHECK(job.run({"--dry-run", "--resume"}).code == 0);
  CHECK(TempDir::read(job.output).empty());
  const BatchFolder twice(R"({"id":1,"prompt":"a"})"
                          "\n"
                          R"({"id":1,"prompt":"b"})"
                          "\n");
  const Outcome outcome = twice.run({"--dry-run"});
  CHECK(outcome.code == 65);
  CHECK(mentions(outcome, "lines 1 and 2 have the same id"));
  CHECK(run({"batch", "-i", job.input.string()}).code == 64);
  CHECK(job.run({"--json"}).code == 64);
  CHECK(run({"batch", "-i", job.input.string(), "--dry-run", "--resume"}).code == 64);
}

TEST_CASE("a dry run of a job that stopped, or of a shard, is of the rows that are left") {
  const BatchFolder job(requests(40));
  REQUIRE(job.run().code == 0);
  const std::vector<std::string> rows = lines_of(job.rows());
  const std::string kept = rows[0] + "\n" + rows[1] + "\n" + rows[2].substr(0, 9);
  job.dir.write("out.jsonl", kept);
  CHECK(estimate(job, {"--resume"}).at("requests") == 38);
  CHECK(job.rows() == kept);
  const BatchFolder other(requests(41));
  CHECK(estimate(other, {"--shard", "1/2"}).at("requests") == 20);
  CHECK(files_in(other.dir.path()) == std::set<std::string>{"in.jsonl"});
}

TEST_CASE("a dry run of an empty job, and of one of errors alone, ends well") {
  CHECK(estimate(BatchFolder("\n")).at("seconds_at_most") == 0);
  const json errors = estimate(BatchFolder("{}\n[]\n"), {}, 1);
  CHECK(errors.at("requests") == 0);
  CHECK(errors.at("error_rows") == 2);
}
