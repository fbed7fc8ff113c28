// `lockstep plan` and --profile: what they print can be read by programs, and the text by people.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("plan: stages, splits, fusions and memory as JSON") {
  const Outcome outcome = run({"plan", "-t", "2", "--json"});
  REQUIRE(outcome.code == 0);
  const json plan = json::parse(outcome.out);
  CHECK(plan["barriers_per_layer"] == 5);
  CHECK(plan["barriers"] == plan["stages"].size());
  CHECK(plan["barriers"] == 5 * plan["layers"].get<int>() + 1);
  CHECK(plan["workers"] == 2);
  CHECK(plan["fusions"].size() == 5);
  std::size_t bytes = 0;
  std::size_t nodes = 0;
  for (const json& stage : plan["stages"]) {
    bytes += stage["weight_bytes"].get<std::size_t>();
    nodes += stage["replicated"].size();
    for (const json& chain : stage["chains"]) {
      nodes += chain["nodes"].size();
      CHECK(chain["own"].size() == 2);
    }
  }
  CHECK(bytes == plan["weight_bytes"]);
  CHECK(nodes == plan["nodes"].size());
  for (const json& buffer : plan["buffers"]) {
    CHECK(buffer["offset"].get<std::size_t>() + buffer["bytes"].get<std::size_t>() <=
          plan["arena_bytes"]);
    CHECK(buffer["first_stage"] <= buffer["last_stage"]);
    CHECK(buffer["last_stage"] < plan["stages"].size());
  }
}

TEST_CASE("plan: the text names what a reader looks for, and tells of equal layers once") {
  const Outcome outcome = run({"plan", "-t", "2", "--buffers"});
  REQUIRE(outcome.code == 0);
  for (const char* part : {"5 a layer", "layer 0, 5 barriers", "layers 2 to 3", "everyone, all",
                           "fused: matmul_add", "blk.1.ffn_down.weight", "arena"}) {
    INFO(part);
    CHECK(contains(outcome.out, part));
  }
  CHECK_FALSE(contains(outcome.out, "blk.3."));
  CHECK(outcome.err.empty());
}

TEST_CASE("plan: schedules and fusions change the plan") {
  const json fixed = json::parse(run({"plan", "-t", "2", "--schedule", "static", "--json"}).out);
  const json dynamic = json::parse(run({"plan", "-t", "2", "--schedule", "dynamic", "--json"}).out);
  CHECK(fixed["stages"][0]["chunks"].empty());
  CHECK_FALSE(dynamic["stages"][0]["chunks"].empty());
  const json apart = json::parse(run({"plan", "--no-fusion", "cache_write", "--json"}).out);
  CHECK(apart["barriers_per_layer"] > 5);
  const json reference = json::parse(run({"plan", "--reference", "--json"}).out);
  CHECK(reference["stages"].size() == reference["nodes"].size());
  const json prefill = json::parse(run({"plan", "--tokens", "64", "--json"}).out);
  CHECK(prefill["tokens"] == 64);
}

TEST_CASE("plan: wrong use is refused in one line") {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"plan", "--no-fusion", "x"},
                                             {"plan", "--logits", "2"},
                                             {"plan", "--tokens", "0"},
                                             {"plan", "--schedule", "fair"},
                                             {"generate", "--no-fusion", "x", "a"}}) {
    const Outcome outcome = run(wrong);
    CHECK(outcome.code == 64);
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("generate --profile shows tables on stderr, and the timeline is a trace") {
  const TempDir dir;
  const std::string trace = (dir.path() / "trace.json").string();
  const Outcome plain = run({"generate", "-t", "2", "-n", "4", "--ids", "Once upon"});
  const Outcome outcome = run({"generate", "-t", "2", "-n", "4", "--ids", "--profile",
                               "--profile-trace", trace, "Once upon"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == plain.out);
  for (const char* part :
       {"3 steps of 1 token", "ffn_gate + ffn_up", "waiting", "matmul ffn_down"}) {
    INFO(part);
    CHECK(contains(outcome.err, part));
  }
  std::ifstream file(trace);
  std::stringstream text;
  text << file.rdbuf();
  const json events = json::parse(text.str())["traceEvents"];
  CHECK(events.size() == 4 * 21 * 2 * 2);  // runs, stages, workers, work and wait
  for (const json& event : events) {
    CHECK(event["ph"] == "X");
    CHECK(event["dur"] >= 0);
  }
  const Outcome refused =
      run({"generate", "--profile-trace", "/no/such/folder/t.json", "-n", "1", "a"});
  CHECK(refused.code == 73);
  CHECK(refused.out.empty());
}
