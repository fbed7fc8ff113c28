// Parts of machines: nodes, processors, hardware threads, groups at every level.
#include "topology/selection.h"

#include <stdexcept>

#include "support/catch.h"
#include "topology/described_machine.h"
#include "topology/placement.h"

using namespace lockstep::topology;
using lockstep::test::synthetic;

namespace {

constexpr const char* kDual = "Package:2 [NUMANode(memory=64GiB)] L3:2 Core:3 PU:2";
constexpr const char* kClusters = "Package:2 Group:2 [NUMANode(memory=32GiB)] L3:1 Core:3 PU:2";

std::vector<unsigned> processors_of(const Machine& machine) {
  std::vector<unsigned> all;
  for (const Core& core : machine.cores) {
    all.insert(all.end(), core.processors.begin(), core.processors.end());
  }
  return all;
}

std::string refusal(const Machine& machine, const Selection& selection) {
  try {
    select(machine, selection);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("lists of numbers and ranges are read and written") {
  CHECK(parse_index_list("0-3,8") == std::vector<unsigned>{0, 1, 2, 3, 8});
  CHECK(parse_index_list("5") == std::vector<unsigned>{5});
  CHECK(parse_index_list("7,1,1-2") == std::vector<unsigned>{1, 2, 7});
  for (const char* const wrong :
       {"", "a", "1-", "-1", "3-1", "1,", "1 2", "99999999999", "0-4000000"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_index_list(wrong), std::invalid_argument);
  }
  CHECK(format_index_list({8, 0, 1, 2, 3}) == "0-3,8");
  CHECK(format_index_list({4}) == "4");
  CHECK(format_index_list({}).empty());
}

TEST_CASE("selecting nodes and processors leaves their cores") {
  const Machine machine = synthetic(kDual);
  REQUIRE(machine.cores.size() == 12);
  const Machine second = select(machine, {.nodes = {1}});
  CHECK(second.cores.size() == 6);
  CHECK(second.nodes.size() == 2);
  CHECK(second.nodes[0].cores.empty());
  CHECK(second.nodes[1].cores == std::vector<unsigned>{0, 1, 2, 3, 4, 5});
  CHECK(processors_of(second).front() == 12);
  CHECK(second.selected);
  // Half of a core is a core with one processor.
  const Machine few = select(machine, {.processors = {0, 3, 12, 13}});
  CHECK(few.cores.size() == 3);
  CHECK(processors_of(few) == std::vector<unsigned>{0, 3, 12, 13});
  CHECK(select(machine, {.nodes = {1}, .processors = {0, 13}}).cores.size() == 1);
  const Machine all = select(machine, {});
  CHECK(all.cores.size() == 12);
  CHECK_FALSE(all.selected);
}

TEST_CASE("with hardware threads every processor is a core") {
  const Machine threads = select(synthetic(kDual), {.nodes = {0}, .smt = true});
  CHECK(threads.cores.size() == 12);
  CHECK(threads.smt);
  for (const Core& core : threads.cores) CHECK(core.processors.size() == 1);
  CHECK(threads.cores[0].os_index == threads.cores[1].os_index);
  const Placement placement = Placement::make(threads, 12, "");
  CHECK_FALSE(placement.oversubscribed);
  CHECK(placement.workers[1].processor == 1);
}

TEST_CASE("what cannot be selected is named beside what can") {
  const Machine machine = synthetic(kDual);
  CHECK(refusal(machine, {.nodes = {2}}) == "node 2 cannot be used; usable are 0-1");
  CHECK(refusal(machine, {.processors = {24}}) == "processor 24 cannot be used; usable are 0-23");
  CHECK(refusal(machine, {.nodes = {1}, .processors = {0}}) ==
        "no processor is both in 0 and on the nodes 1");
}

TEST_CASE("sockets, nodes and caches are groups") {
  const Machine clusters = synthetic(kClusters);
  CHECK(groups_of(clusters, Level::socket).size() == 2);
  CHECK(groups_of(clusters, Level::node).size() == 4);
  CHECK(groups_of(clusters, Level::cache).size() == 4);
  const Machine dual = synthetic(kDual);
  CHECK(groups_of(dual, Level::socket).size() == 2);
  CHECK(groups_of(dual, Level::node).size() == 2);
  CHECK(groups_of(dual, Level::cache).size() == 4);
  // The largest group alone: a socket of two nodes, a node, a cache.
  CHECK(largest_group(clusters, Level::socket).cores.size() == 6);
  CHECK(Placement::make(largest_group(clusters, Level::socket), 6, "").nodes == 2);
  CHECK(largest_group(clusters, Level::node).cores.size() == 3);
  CHECK(largest_group(dual, Level::cache).cores.size() == 3);
  const Machine uneven = select(dual, {.processors = {0, 12, 14, 16}});
  CHECK(processors_of(largest_group(uneven, Level::node)) == std::vector<unsigned>{12, 14, 16});
}

TEST_CASE("workers are spread over the groups of the level, with contiguous ids on every node") {
  const Machine clusters = synthetic(kClusters);
  for (const Level level : {Level::socket, Level::node, Level::cache}) {
    for (unsigned threads = 1; threads <= 12; ++threads) {
      const Placement placement = Placement::make(clusters, threads, "", level);
      REQUIRE(placement.workers.size() == threads);
      unsigned previous = 0;
      std::vector<unsigned> per_socket(2);
      for (const Worker& worker : placement.workers) {
        CHECK(worker.node >= previous);
        previous = worker.node;
        per_socket[clusters.cores[worker.core].package] += 1;
        CHECK(worker.os_node == clusters.nodes[clusters.cores[worker.core].node].os_index);
      }
      CHECK(per_socket[0] - per_socket[1] <= 2);
    }
  }
  // Two workers go to two sockets, whatever the level; four to all nodes.
  CHECK(Placement::make(clusters, 2, "", Level::socket).nodes == 2);
  CHECK(Placement::make(clusters, 4, "", Level::node).nodes == 4);
}

TEST_CASE("workers that somebody else bound are taken where they run") {
  const Machine machine = synthetic(kDual);
  const Placement asked = Placement::make(machine, 3, "OMP_PLACES=cores");
  const Placement seen = asked.observed(machine, {14, 15, 2});
  CHECK(seen.workers[0].node == 1);
  CHECK(seen.workers[1].node == 1);
  CHECK(seen.workers[0].core == seen.workers[1].core);
  CHECK(seen.workers[2].node == 0);
  CHECK(seen.workers[2].os_node == 0);
  CHECK(seen.nodes == 2);
  // Unknown processors change nothing.
  const Placement unknown = asked.observed(machine, {-1, 999, -1});
  for (std::size_t i = 0; i < 3; ++i) CHECK(unknown.workers[i].core == asked.workers[i].core);
}
