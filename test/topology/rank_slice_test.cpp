// Slices of machines of all kinds for every number of ranks.
#include "topology/rank_slice.h"

#include <algorithm>
#include <set>

#include "support/catch.h"
#include "topology/described_machine.h"
#include "topology/selection.h"

using namespace lockstep::topology;
using lockstep::test::edited;
using lockstep::test::scratch_dir;
using lockstep::test::synthetic;

namespace {

constexpr const char* kDual = "Package:2 [NUMANode(memory=64GiB)] L3:1 Core:4 PU:2";

struct Described {
  const char* name;
  Machine machine;
};

std::vector<Described> machines() {
  std::vector<Described> all;
  const auto add = [&](const char* text) { all.push_back({text, synthetic(text)}); };
  add("NUMANode:1(memory=8GiB) Core:1 PU:1");
  add("NUMANode:1(memory=8GiB) Core:7 PU:2");
  add(kDual);
  add("Package:2 Group:2 [NUMANode(memory=32GiB)] L3:1 Core:6 PU:2");
  add("Package:2 Group:4 [NUMANode(memory=16GiB)] Core:3 PU:1");
  add("NUMANode:3(memory=8GiB indexes=7,2,5) Core:2 PU:1");
  // Main memory and high-bandwidth memory beside it: two nodes, the cores belong to one.
  add("Package:2 [NUMANode(memory=64GiB)] [NUMANode(memory=16GiB)] Core:4 PU:2");
  all.push_back({"uneven nodes", select(synthetic("NUMANode:2(memory=8GiB) Core:8 PU:2"),
                                        {.processors = {0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18}})});
  all.push_back({"a node without cores",
                 select(synthetic("NUMANode:4(memory=8GiB) Core:4 PU:1"), {.nodes = {0, 1, 3}})});
  all.push_back({"hardware threads", select(synthetic(kDual), {.smt = true})});
  return all;
}

using Slices = std::vector<std::vector<unsigned>>;

Slices slices_of(const Machine& machine, unsigned ranks) {
  Slices slices;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    slices.push_back(rank_slice(machine, rank, ranks));
  }
  return slices;
}

// Processors in the order of the nodes, then of the machine's cores.
std::vector<unsigned> in_order(const Machine& machine) {
  std::vector<unsigned> all;
  for (const std::vector<unsigned>& group : groups_of(machine, Level::node)) {
    for (const unsigned core : group) {
      const std::vector<unsigned>& here = machine.cores[core].processors;
      all.insert(all.end(), here.begin(), here.end());
    }
  }
  return all;
}

std::set<unsigned> nodes_under(const Machine& machine, const std::vector<unsigned>& processors) {
  std::set<unsigned> nodes;
  for (const Core& core : machine.cores) {
    for (const unsigned processor : core.processors) {
      if (std::ranges::find(processors, processor) != processors.end()) nodes.insert(core.node);
    }
  }
  return nodes;
}

}  // namespace

TEST_CASE("slices are disjoint, contiguous and cover the machine, for every number of ranks") {
  for (const auto& [name, machine] : machines()) {
    const std::size_t nodes = groups_of(machine, Level::node).size();
    const std::vector<unsigned> order = in_order(machine);
    for (unsigned ranks = 1; ranks <= machine.cores.size(); ++ranks) {
      CAPTURE(name, ranks);
      std::vector<unsigned> joined;
      for (std::vector<unsigned> slice : slices_of(machine, ranks)) {
        REQUIRE_FALSE(slice.empty());
        CHECK(std::ranges::is_sorted(slice));
        if (ranks >= nodes) CHECK(nodes_under(machine, slice).size() == 1);
        std::ranges::sort(slice, {}, [&](unsigned processor) {
          return std::ranges::find(order, processor) - order.begin();
        });
        joined.insert(joined.end(), slice.begin(), slice.end());
      }
      CHECK(joined == order);
    }
  }
}

TEST_CASE("no rank has much more than another of the same node") {
  for (const auto& [name, machine] : machines()) {
    const std::size_t nodes = groups_of(machine, Level::node).size();
    for (auto ranks = static_cast<unsigned>(nodes); ranks <= machine.cores.size(); ++ranks) {
      CAPTURE(name, ranks);
      std::vector<std::pair<unsigned, std::size_t>> sizes;  // node, cores
      for (const std::vector<unsigned>& slice : slices_of(machine, ranks)) {
        sizes.emplace_back(*nodes_under(machine, slice).begin(),
                           select(machine, {.processors = slice}).cores.size());
      }
      for (const auto& [node, cores] : sizes) {
        for (const auto& [other_node, other] : sizes) {
          if (node == other_node) CHECK(cores <= other + 1);
        }
      }
    }
  }
}

TEST_CASE("ranks take whole nodes where there are enough") {
  const Machine dual = synthetic(kDual);
  CHECK(rank_slice(dual, 0, 2) == std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(rank_slice(dual, 1, 2) == std::vector<unsigned>{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(describe_processors(dual, rank_slice(dual, 1, 2)) == "node 1, processors 8-15");
  const Machine clusters = synthetic("Package:2 Group:2 [NUMANode(memory=32GiB)] Core:3 PU:1");
  CHECK(describe_processors(clusters, rank_slice(clusters, 0, 2)) == "nodes 0-1, processors 0-5");
  CHECK(describe_processors(clusters, rank_slice(clusters, 0, 3)) == "nodes 0-1, processors 0-5");
  CHECK(describe_processors(clusters, rank_slice(clusters, 1, 3)) == "node 2, processors 6-8");
  CHECK(describe_processors(clusters, rank_slice(clusters, 3, 4)) == "node 3, processors 9-11");
}

TEST_CASE("more ranks than nodes divide the cores of each") {
  const Machine dual = synthetic(kDual);
  CHECK(rank_slice(dual, 1, 4) == std::vector<unsigned>{4, 5, 6, 7});
  // Two on the first node, one on the second.
  CHECK(rank_slice(dual, 0, 3) == std::vector<unsigned>{0, 1, 2, 3});
  CHECK(rank_slice(dual, 2, 3) == std::vector<unsigned>{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(describe_processors(dual, rank_slice(dual, 7, 8)) == "node 1, processors 14-15");
  // Eight cores and two: three ranks on the larger node, one on the smaller.
  const Machine uneven = select(synthetic("NUMANode:2(memory=8GiB) Core:8 PU:1"),
                                {.processors = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  CHECK(slices_of(uneven, 4) == Slices{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}});
}

TEST_CASE("what is not allowed is in no slice") {
  const Machine machine = edited(
      "NUMANode:2(memory=8GiB) Core:4 PU:2",
      [](hwloc_topology_t topology) {
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        hwloc_bitmap_list_sscanf(set, "1,2-3,15");
        hwloc_topology_allow(topology, set, nullptr, HWLOC_ALLOW_FLAG_CUSTOM);
        hwloc_bitmap_free(set);
      },
      scratch_dir("slice-of-allowed") / "machine.xml");
  CHECK(slices_of(machine, 2) == Slices{{1, 2, 3}, {15}});
  CHECK(slices_of(machine, 3) == Slices{{1}, {2, 3}, {15}});
}

TEST_CASE("more ranks than cores share cores") {
  const Machine machine = synthetic("NUMANode:2(memory=8GiB) Core:1 PU:2");
  CHECK(slices_of(machine, 3) == Slices{{0, 1}, {0, 1}, {2, 3}});
  CHECK(slices_of(machine, 5) == Slices{{0, 1}, {0, 1}, {0, 1}, {2, 3}, {2, 3}});
  CHECK(describe_processors(machine, {3}) == "node 1, processor 3");
}
