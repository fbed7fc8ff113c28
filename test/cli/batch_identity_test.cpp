// The output of a job, sorted, is the same bytes (ids, texts, log-probabilities) whatever computed
// it: slots, threads, reuse of beginnings, a cache so small that sequences are interrupted, parts.
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_parts.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

// Chats behind one system prompt, prompts that repeat each other, drawn and greedy, with and
// without log-probabilities; an error row now and then.
std::string mixed_requests() {
  const std::string system =
      "You are a teller of tales for small children. Foxes are kind, ponies are old, and every "
      "story has an end that lets its listener sleep. Use short words, and never say how it ends "
      "before it ends.";
  std::string text;
  for (int i = 0; i < 36; ++i) {
    json line = {{"id", "r" + std::to_string(i)},
                 {"max_tokens", i % 12 == 5 ? 0 : 3 + i * 37 % 130}};
    if (i % 3 == 0) {
      line["messages"] = {{{"role", "system"}, {"content", system}},
                          {{"role", "user"}, {"content", "Story " + std::to_string(i % 4)}}};
    } else if (i % 3 == 1) {
      line["prompt"] = system.substr(0, static_cast<std::size_t>(20 + i * 5));
    } else {
      line["prompt"] = "Once upon a time there was a fox number " + std::to_string(i);
    }
    if (i % 2 == 0) line["logprobs"] = i % 3 == 0 ? json(true) : json(3);
    if (i % 4 == 1) line["temperature"] = 0.9;
    if (i % 8 == 1) line["seed"] = i;
    if (i % 5 == 4) line["repetition_penalty"] = 1.2;
    text += line.dump() + "\n";
  }
  return text;
}

struct Result {
  std::string rows;
  json summary;
};

Result sorted_run(const std::vector<std::string>& options) {
  const BatchFolder job(mixed_requests());
  const std::string summary = (job.dir.path() / "summary.json").string();
  std::vector<std::string> all = {"--sorted", "--ctx", "320", "--summary", summary};
  all.insert(all.end(), options.begin(), options.end());
  const Outcome outcome = job.run(all);
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  return {job.rows(), json::parse(TempDir::read(summary))};
}

}  // namespace

TEST_CASE("the sorted output is the same bytes for any slots, threads and reuse of beginnings") {
  const Result expected = sorted_run({"--slots", "1", "-t", "1", "--no-prefix-reuse"});
  CHECK(lines_of(expected.rows).size() == 36);
  CHECK(expected.rows.find("logprobs") != std::string::npos);
  CHECK(expected.summary.at("error_rows") == 3);
  CHECK(expected.summary.at("cached_tokens") == 0);
  for (const char* const slots : {"1", "4", "32"}) {
    for (const char* const threads : {"1", "2"}) {
      CAPTURE(slots, threads);
      const Result reused = sorted_run({"--slots", slots, "-t", threads});
      CHECK(reused.rows == expected.rows);
      CHECK(reused.summary.at("cached_tokens") > 0);
      CHECK(sorted_run({"--slots", slots, "-t", threads, "--no-prefix-reuse"}).rows ==
            expected.rows);
    }
  }
}

TEST_CASE(
    "the sorted output is the same bytes with a cache that is too small, and in small steps") {
  const Result expected = sorted_run({});
  // One block more than a single sequence can need.
  const std::uint64_t block =
      expected.summary.at("cache_bytes").get<std::uint64_t>() / (32 * 320 / 32 + 1);
  for (const char* const reuse : {"", "--no-prefix-reuse"}) {
    std::vector<std::string> options = {"--kv-memory", std::to_string(11 * block), "-t", "2"};
    if (*reuse != '\0') options.emplace_back(reuse);
    const Result tight = sorted_run(options);
    CAPTURE(reuse, block);
    CHECK(tight.rows == expected.rows);
    CHECK(tight.summary.at("preemptions") > 0);
    CHECK(tight.summary.at("recomputed_tokens") > 0);
  }
  CHECK(sorted_run({"--slots", "4", "--batch-tokens", "7"}).rows == expected.rows);
}

TEST_CASE("two shards, merged, are the same bytes as one process") {
  const SharedJob job(mixed_requests());
  for (const char* const shard : {"0/2", "1/2"}) {
    const Outcome outcome = job.run({"--shard", shard, "--ctx", "320"});
    INFO(outcome.err);
    CHECK((outcome.code == 0 || outcome.code == 1));
  }
  const std::string merged = (job.dir.path() / "merged.jsonl").string();
  const Outcome outcome = job.merge(merged);
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK(TempDir::read(merged) == sorted_run({}).rows);
}
