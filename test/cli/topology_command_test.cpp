// `lockstep topology` on machines that are not there, and the placement options.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.h"
#include "support/scoped_variable.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"
#include "topology/core_claims.h"
#include "topology/machine.h"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What `lockstep topology --json` says of a described machine.
json on(const char* description, std::vector<std::string> words) {
  const ScopedVariable machine("HWLOC_SYNTHETIC", description);
  words.insert(words.begin(), {"topology", "--json"});
  const Outcome outcome = run(words);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

struct Row {
  const char* name;
  const char* description;
  std::vector<std::string> options;
  std::vector<int> workers_on;  // by node that has workers
  std::vector<int> nodes;       // their OS indices
};

constexpr const char* kSmall = "Package:2 [NUMANode(memory=8GiB)] L3:1 Core:4 PU:2";
constexpr const char* kXeon = "Package:2 [NUMANode(memory=192GiB)] L3:1 Core:24 PU:2";
constexpr const char* kClusters = "Package:2 Group:2 [NUMANode(memory=96GiB)] L3:1 Core:12 PU:2";
// Flat mode: every cluster has memory of its own and high-bandwidth memory beside it.
constexpr const char* kFlat =
    "Package:2 Group:2 [NUMANode(memory=64GiB)] [NUMANode(memory=16GiB)] L3:1 Core:6 PU:1";
constexpr const char* kEpyc = "Package:2 Group:4 [NUMANode(memory=64GiB)] L3:2 Core:8 PU:2";
constexpr const char* kGaps = "NUMANode:3(memory=8GiB indexes=7,2,5) Core:4 PU:1";

}  // namespace

TEST_CASE("topology: workers, nodes and rows of machines of all kinds") {
  const Row rows[] = {
      {"two nodes of four cores, 8 threads", kSmall, {"-t", "8"}, {4, 4}, {0, 1}},
      {"two nodes of four cores, 6 threads", kSmall, {"-t", "6"}, {3, 3}, {0, 1}},
      {"dual Xeon", kXeon, {}, {24, 24}, {0, 1}},
      {"dual Xeon, 7 threads", kXeon, {"-t", "7"}, {4, 3}, {0, 1}},
      {"dual Xeon, one node", kXeon, {"--numa", "one-node"}, {24}, {0}},
      {"dual Xeon, second node", kXeon, {"--nodes", "1"}, {24}, {1}},
      {"dual Xeon, hardware threads", kXeon, {"--smt"}, {48, 48}, {0, 1}},
      {"dual Xeon, some processors", kXeon, {"--cores", "0-7,48-51"}, {4, 2}, {0, 1}},
      {"sub-NUMA clusters", kClusters, {}, {12, 12, 12, 12}, {0, 1, 2, 3}},
      {"sub-NUMA clusters, 6 threads", kClusters, {"-t", "6"}, {2, 1, 2, 1}, {0, 1, 2, 3}},
      {"sub-NUMA clusters, one socket",
       kClusters,
       {"--numa", "one-node", "--numa-level", "socket"},
       {12, 12},
       {0, 1}},
      {"flat high-bandwidth memory", kFlat, {}, {6, 6, 6, 6}, {0, 2, 4, 6}},
      {"EPYC NPS4", kEpyc, {"-t", "8"}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {"EPYC NPS4, one cache", kEpyc, {"--numa", "one-node", "--numa-level", "cache"}, {8}, {0}},
      {"node numbers with gaps", kGaps, {"-t", "6"}, {2, 2, 2}, {2, 5, 7}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const json plan = on(row.description, row.options);
    std::vector<int> nodes;
    std::vector<int> counts;
    std::size_t next_row = 0;
    std::set<std::pair<int, int>> cores;  // by package
    for (const json& worker : plan["workers"]) {
      if (nodes.empty() || nodes.back() != worker["node"]) {
        nodes.push_back(worker["node"]);
        counts.push_back(0);
      }
      ++counts.back();
      const bool smt = !row.options.empty() && row.options[0] == "--smt";
      CHECK((cores.emplace(worker["package"], worker["core"]).second || smt));
      // Rows are contiguous, in worker order, and as even as can be.
      CHECK(worker["rows"][0] == next_row);
      next_row = worker["rows"][1];
      const std::size_t share = 4096 / plan["workers"].size();
      const std::size_t mine = next_row - worker["rows"][0].get<std::size_t>();
      CHECK((mine == share || mine == share + 1));
    }
    CHECK(next_row == 4096);
    CHECK(nodes == row.nodes);
    CHECK(counts == row.workers_on);
    CHECK_FALSE(plan["this_system"]);
    CHECK_FALSE(plan["pinned"]);
  }
}

TEST_CASE("topology: a memory-only node is listed and has no workers") {
  // CXL memory beside two sockets, as hwloc describes it: a node of the whole machine.
  const json plan =
      on("[NUMANode(memory=256GiB)] Package:2 [NUMANode(memory=64GiB)] Core:4 PU:1", {});
  CHECK(plan["nodes"].size() == 3);
  CHECK(plan["workers"].size() == 8);
  std::size_t without = 0;
  for (const json& node : plan["nodes"]) without += node["cores"] == 0;
  CHECK(without == 1);
}

TEST_CASE("topology: the tree names limits, nodes, cores, workers and rows") {
  const ScopedVariable machine("HWLOC_SYNTHETIC",
                               "Package:2 [NUMANode(memory=4GiB)] L3:2 Core:2 PU:2");
  const Outcome outcome = run({"topology", "-t", "6", "--rows", "600"});
  REQUIRE(outcome.code == 0);
  for (const char* part :
       {"2 packages, 2 NUMA nodes, 8 cores (described, not this system)",
        "affinity mask:", "cgroup CPU quota", "budget: ", "team: 6 asked for", "policy: rows",
        "package 1", "node 1  4.00 GiB", "cache 3", "worker 5    rows 500-599", "idle"}) {
    INFO(part << " in\n" << outcome.out);
    CHECK(contains(outcome.out, part));
  }
}

TEST_CASE("topology: this machine, with the rows of a model") {
  const Outcome outcome = run(
      {"topology", "-m", std::string(LOCKSTEP_SOURCE_DIR) + "/runtime/demo/storyteller-f16.gguf"});
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.out, "blk.0.ffn_gate.weight"));
  CHECK(contains(outcome.out, "worker 0"));
}

TEST_CASE("topology: hwloc draws the machine") {
  const TempDir folder;
  const auto file = folder.path() / "machine.svg";
  const Outcome outcome = run({"topology", "--svg", file.string()});
  if (outcome.code == 71) {
    CHECK(contains(outcome.err, "hwloc-nox"));
    WARN("SKIPPED: lstopo-no-graphics is not installed");
    return;
  }
  REQUIRE(outcome.code == 0);
  CHECK(contains(TempDir::read(file), "<svg"));
  CHECK(run({"topology", "--svg", file.string()}).code == 73);
  CHECK(run({"topology", "--svg", (folder.path() / "no" / "file.svg").string()}).code == 73);
}

TEST_CASE("placement options: wrong use is refused in one line") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--numa", "everywhere"}, "--numa"},
      {{"--numa-level", "room"}, "--numa-level"},
      {{"--nodes", "x"}, "0-3,8"},
      {{"--nodes", "999"}, "node 999 cannot be used; usable are"},
      {{"--cores", "100000"}, "processor 100000 cannot be used"},
      {{"--cores", "5-1"}, "--cores"},
  };
  for (const auto& [words, part] : cases) {
    std::vector<std::string> command{"topology"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = run(command);
    INFO(part << " in " << outcome.err);
    CHECK(outcome.code == 64);
    CHECK(contains(outcome.err, part));
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("ranks of a machine that were given the same cores are told so") {
  const topology::Machine machine = topology::Machine::detect();
  std::vector<unsigned> processors;
  for (const topology::Core& core : machine.cores) {
    processors.insert(processors.end(), core.processors.begin(), core.processors.end());
  }
  // This process stands for the other rank.
  const topology::CoreClaims claims(processors);
  Invocation rank;
  rank.arguments = {"generate", "-t", "1", "-n", "1", "Once"};
  CHECK(run(rank).err.find("another rank") == std::string::npos);
  rank.environment = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Outcome outcome = run(rank);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "used by another rank on this machine"));
  CHECK(contains(outcome.err, "mpirun --bind-to numa"));
}

TEST_CASE("every policy gives the same logits and tells where the pages are") {
  std::string expected;
  for (const char* const policy : {"rows", "one-node", "interleave", "none", "replicate"}) {
    INFO(policy);
    const Outcome outcome = run({"generate", "-t", "2", "-n", "4", "--numa", policy,
                                 "--logits-hash", "--small-pages", "Once"});
    REQUIRE(outcome.code == 0);
    CHECK(contains(outcome.err, "a copy of the weights on each of") ==
          (std::string(policy) == "replicate"));
    const std::size_t at = outcome.err.find("logits hash");
    REQUIRE(at != std::string::npos);
    const std::string hash = outcome.err.substr(at, 28);
    if (expected.empty()) expected = hash;
    CHECK(hash == expected);

    const Outcome residency =
        run({"inspect", "--residency", "--json", "-t", "2", "--numa", policy});
    REQUIRE(residency.code == 0);
    const json report = json::parse(residency.out);
    CHECK(report["numa_policy"] == policy);
    for (const char* const what : {"weights", "cache"}) {
      const json& memory = report[what];
      if (memory.contains("unknown")) continue;
      CHECK(memory["owned_bytes"].get<std::size_t>() > 0);
      CHECK(memory["owned_bytes"].get<std::size_t>() ==
            memory["local_bytes"].get<std::size_t>() + memory["remote_bytes"].get<std::size_t>());
    }
  }
  const Outcome text = run({"inspect", "--residency"});
  REQUIRE(text.code == 0);
  CHECK(contains(text.out, "remote bytes per token:"));
  CHECK(contains(text.out, "NUMA balancing"));
}
