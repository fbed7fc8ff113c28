// What is read of a machine, on machines that hwloc describes: nodes without cores or memory, gaps
// in the numbers, parts that may not be used, and descriptions that cannot be read.
#include "topology/machine.h"

#include <fstream>
#include <set>
#include <string>

#include "support/catch.h"
#include "topology/binding.h"
#include "topology/described_machine.h"

namespace {

using lockstep::test::edited;
using lockstep::test::from_xml;
using lockstep::test::ScopedVariable;
using lockstep::test::scratch_dir;
using lockstep::test::synthetic;
using lockstep::topology::Core;
using lockstep::topology::Machine;

void allow_processors(hwloc_topology_t topology, const std::string& list) {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  hwloc_bitmap_list_sscanf(set, list.c_str());
  REQUIRE(hwloc_topology_allow(topology, set, nullptr, HWLOC_ALLOW_FLAG_CUSTOM) == 0);
  hwloc_bitmap_free(set);
}

void register_kind(hwloc_topology_t topology, const std::string& list, int efficiency,
                   const char* name, const char* value) {
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  hwloc_bitmap_list_sscanf(set, list.c_str());
  hwloc_info_s info{const_cast<char*>(name), const_cast<char*>(value)};
  REQUIRE(hwloc_cpukinds_register(topology, set, efficiency, 1, &info, 0) == 0);
  hwloc_bitmap_free(set);
}

// Every core belongs to exactly the node that lists it.
void check_consistent(const Machine& machine) {
  std::size_t listed = 0;
  for (std::size_t n = 0; n < machine.nodes.size(); ++n) {
    for (const unsigned core : machine.nodes[n].cores) {
      REQUIRE(core < machine.cores.size());
      CHECK(machine.cores[core].node == n);
      ++listed;
    }
  }
  CHECK(listed == machine.cores.size());
  std::set<unsigned> seen;
  for (const Core& core : machine.cores) {
    CHECK_FALSE(core.processors.empty());
    for (const unsigned processor : core.processors) CHECK(seen.insert(processor).second);
  }
}

}  // namespace

TEST_CASE("a dual-socket machine is read as described") {
  const Machine machine = synthetic("Package:2 [NUMANode(memory=64GiB)] L3:1 Core:4 PU:2");
  CHECK_FALSE(machine.is_this_system);
  CHECK(machine.packages == 2);
  CHECK(machine.total_cores == 8);
  CHECK(machine.total_processors == 16);
  CHECK(machine.mask_processors == 16);
  CHECK(machine.slow_cores == 0);
  REQUIRE(machine.nodes.size() == 2);
  CHECK(machine.nodes[1].memory_bytes == std::uint64_t{64} << 30);
  CHECK(machine.nodes[0].cores == std::vector<unsigned>{0, 1, 2, 3});
  CHECK(machine.nodes[1].cores == std::vector<unsigned>{4, 5, 6, 7});
  CHECK(machine.cores[5].processors == std::vector<unsigned>{10, 11});
  check_consistent(machine);
}

TEST_CASE("sub-NUMA clusters with a second memory tier keep cores on the first tier") {
  const Machine machine = synthetic(
      "Package:2 Group:2 [NUMANode(memory=32GiB)] [NUMANode(memory=16GiB)] L3:1 Core:4 PU:2");
  REQUIRE(machine.nodes.size() == 8);
  CHECK(machine.cores.size() == 16);
  for (std::size_t n = 0; n < 8; ++n) {
    CAPTURE(n);
    CHECK(machine.nodes[n].cores.size() == (n % 2 == 0 ? 4 : 0));
  }
  check_consistent(machine);
}

TEST_CASE("a node without memory keeps its cores") {
  const Machine machine = edited(
      "NUMANode:2(memory=8GiB) Core:2 PU:1",
      [](hwloc_topology_t t) {
        hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, 0)->attr->numanode.local_memory = 0;
      },
      scratch_dir("no-memory") / "machine.xml");
  REQUIRE(machine.nodes.size() == 2);
  CHECK(machine.nodes[0].memory_bytes == 0);
  CHECK(machine.nodes[0].cores.size() == 2);
  CHECK(machine.nodes[1].cores.size() == 2);
  check_consistent(machine);
}

TEST_CASE("node numbers may have gaps and need not begin at zero") {
  const Machine machine = synthetic("NUMANode:3(memory=8GiB indexes=7,2,5) Core:2 PU:1");
  REQUIRE(machine.nodes.size() == 3);
  CHECK(machine.nodes[0].os_index == 2);
  CHECK(machine.nodes[1].os_index == 5);
  CHECK(machine.nodes[2].os_index == 7);
  // Node 7 is the first in hwloc's order, so it has the first cores.
  CHECK(machine.nodes[2].cores == std::vector<unsigned>{0, 1});
  CHECK(machine.nodes[0].cores == std::vector<unsigned>{2, 3});
  check_consistent(machine);
}

TEST_CASE("a core with one allowed hardware thread is usable") {
  const Machine machine = edited(
      "NUMANode:2(memory=8GiB) Core:4 PU:2",
      [](hwloc_topology_t t) { allow_processors(t, "1,2-3,15"); },
      scratch_dir("half-allowed") / "machine.xml");
  REQUIRE(machine.cores.size() == 3);
  CHECK(machine.total_cores == 8);
  CHECK(machine.total_processors == 16);
  CHECK(machine.mask_processors == 4);
  CHECK_FALSE(machine.is_bound());
  CHECK(machine.cores[0].processors == std::vector<unsigned>{1});
  CHECK(machine.cores[1].processors == std::vector<unsigned>{2, 3});
  CHECK(machine.cores[2].processors == std::vector<unsigned>{15});
  CHECK(machine.cores[2].node == 1);
  check_consistent(machine);
}

TEST_CASE("a node with no allowed core is listed without cores") {
  const Machine machine = edited(
      "NUMANode:3(memory=8GiB) Core:2 PU:1", [](hwloc_topology_t t) { allow_processors(t, "4-5"); },
      scratch_dir("empty-nodes") / "machine.xml");
  REQUIRE(machine.nodes.size() == 3);
  CHECK(machine.nodes[0].cores.empty());
  CHECK(machine.nodes[1].cores.empty());
  CHECK(machine.nodes[2].cores == std::vector<unsigned>{0, 1});
  CHECK(machine.nodes[0].memory_bytes == std::uint64_t{8} << 30);
  check_consistent(machine);
}

TEST_CASE("memory that a cpuset forbids does not count") {
  const Machine machine = edited(
      "NUMANode:2(memory=8GiB) Core:2 PU:1",
      [](hwloc_topology_t t) {
        hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
        hwloc_bitmap_set(nodes, 1);
        REQUIRE(hwloc_topology_allow(t, nullptr, nodes, HWLOC_ALLOW_FLAG_CUSTOM) == 0);
        hwloc_bitmap_free(nodes);
      },
      scratch_dir("forbidden-memory") / "machine.xml");
  REQUIRE(machine.nodes.size() == 2);
  CHECK(machine.nodes[0].memory_bytes == 0);
  CHECK(machine.nodes[1].memory_bytes == std::uint64_t{8} << 30);
  CHECK(machine.nodes[0].cores.size() == 2);
}

TEST_CASE("of a hybrid processor only the fastest kind of core counts") {
  const auto hybrid = [](hwloc_topology_t t) {
    register_kind(t, "0-3", 1, "CoreType", "IntelCore");
    register_kind(t, "4-7", 0, "CoreType", "IntelAtom");
  };
  const std::filesystem::path file = scratch_dir("hybrid") / "machine.xml";
  const std::string description = "NUMANode:1(memory=8GiB) Core:8 PU:1";

  const Machine machine = edited(description, hybrid, file);
  CHECK(machine.cores.size() == 4);
  CHECK(machine.slow_cores == 4);
  CHECK(machine.total_cores == 8);
  CHECK(machine.cores.back().processors == std::vector<unsigned>{3});
  check_consistent(machine);

  // Where only the slower kind is allowed, it is the fastest there is.
  const Machine only_slow = edited(
      description,
      [&](hwloc_topology_t t) {
        hybrid(t);
        allow_processors(t, "5-7");
      },
      file);
  CHECK(only_slow.cores.size() == 3);
  CHECK(only_slow.slow_cores == 0);
}

TEST_CASE("a small difference in frequency does not make a slower kind, a large one does") {
  const std::filesystem::path file = scratch_dir("frequencies") / "machine.xml";
  const auto kinds = [](const char* slow) {
    return [slow](hwloc_topology_t t) {
      register_kind(t, "0-1", 1, "FrequencyMaxMHz", "5000");
      register_kind(t, "2-3", 0, "FrequencyMaxMHz", slow);
    };
  };
  const std::string description = "NUMANode:1(memory=8GiB) Core:4 PU:1";
  CHECK(edited(description, kinds("4700"), file).cores.size() == 4);
  const Machine machine = edited(description, kinds("2400"), file);
  CHECK(machine.cores.size() == 2);
  CHECK(machine.slow_cores == 2);
}

TEST_CASE("a machine without cores or packages counts processors") {
  const Machine machine = synthetic("NUMANode:1(memory=8GiB) PU:4");
  CHECK(machine.packages == 0);
  CHECK(machine.total_cores == 4);
  CHECK(machine.cores.size() == 4);
  CHECK(machine.cores[3].processors == std::vector<unsigned>{3});
}

TEST_CASE("a description that hwloc cannot use is an error and never this machine") {
  for (const char* const bad :
       {"nonsense", "Package:2 L3:1(size=27.5MiB) Core:2 PU:1", "Core:0 PU:1"}) {
    CAPTURE(bad);
    std::string message;
    try {
      synthetic(bad);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message.find(bad) != std::string::npos);
  }
  const std::filesystem::path dir = scratch_dir("bad-xml");
  CHECK_THROWS_AS(from_xml(dir / "missing.xml"), std::runtime_error);
  const char* const texts[] = {"", "no xml", "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">",
                               "<?xml version=\"1.0\"?>\n<topology version=\"9.0\"></topology>"};
  for (const char* const text : texts) {
    CAPTURE(text);
    std::ofstream(dir / "bad.xml") << text;
    CHECK_THROWS_AS(from_xml(dir / "bad.xml"), std::runtime_error);
  }
}

TEST_CASE("an empty variable is none") {
  const ScopedVariable xml("HWLOC_XMLFILE", "");
  const ScopedVariable text("HWLOC_SYNTHETIC", "");
  CHECK(Machine::detect().is_this_system);
}

TEST_CASE("this machine is cut down to the affinity mask of the calling thread") {
  const ScopedVariable xml("HWLOC_XMLFILE", nullptr);
  const ScopedVariable text("HWLOC_SYNTHETIC", nullptr);
  const std::vector<unsigned> before = lockstep::topology::affinity_mask();
  REQUIRE_FALSE(before.empty());
  const Machine whole = Machine::detect();
  CHECK(whole.is_this_system);
  CHECK(whole.mask_processors == before.size());
  CHECK(whole.total_cores >= whole.cores.size());
  check_consistent(whole);
  // Looking must not change the mask.
  CHECK(lockstep::topology::affinity_mask() == before);

  const unsigned last = whole.cores.back().processors.back();
  REQUIRE(lockstep::topology::set_affinity_mask({last}));
  const Machine narrow = Machine::detect();
  REQUIRE(lockstep::topology::set_affinity_mask(before));
  CHECK(narrow.mask_processors == 1);
  CHECK(narrow.is_bound() == (whole.allowed_processors > 1));
  REQUIRE(narrow.cores.size() == 1);
  CHECK(narrow.cores[0].processors == std::vector<unsigned>{last});
  CHECK(narrow.total_cores == whole.total_cores);
  check_consistent(narrow);
}
