// Which worker goes where: a table of machines, and every thread count on each of them.
#include "topology/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include "support/catch.h"
#include "topology/described_machine.h"

namespace {

using lockstep::test::ScopedVariable;
using lockstep::test::synthetic;
using lockstep::topology::Core;
using lockstep::topology::Machine;
using lockstep::topology::MemoryNode;
using lockstep::topology::Placement;
using lockstep::topology::user_openmp_binding;
using lockstep::topology::Worker;

// A machine by hand, with processors 2i and 2i + 1 on core i: `cores_of[n]` cores on node n. It
// claims to be this system, so that the rules of pinning apply; nothing here pins.
Machine machine_with(const std::vector<unsigned>& cores_of) {
  Machine machine;
  for (std::size_t n = 0; n < cores_of.size(); ++n) {
    MemoryNode node;
    node.os_index = static_cast<unsigned>(n);
    for (unsigned i = 0; i < cores_of[n]; ++i) {
      const auto core = static_cast<unsigned>(machine.cores.size());
      machine.cores.push_back({core, static_cast<unsigned>(n), {2 * core, 2 * core + 1}});
      node.cores.push_back(core);
    }
    machine.nodes.push_back(node);
  }
  machine.total_cores = machine.cores.size();
  return machine;
}

std::vector<unsigned> workers_per_node(const Placement& placement) {
  std::vector<unsigned> counts(placement.nodes);
  for (const Worker& worker : placement.workers) counts.at(worker.node) += 1;
  return counts;
}

bool ids_are_contiguous(const Placement& placement) {
  return std::is_sorted(placement.workers.begin(), placement.workers.end(),
                        [](const Worker& a, const Worker& b) { return a.node < b.node; });
}

}  // namespace

TEST_CASE("workers are divided among the nodes in proportion to their cores") {
  struct Case {
    std::vector<unsigned> cores_of;
    unsigned threads;
    std::vector<unsigned> expected;
  };
  const std::vector<Case> cases = {
      {{4, 4}, 8, {4, 4}},
      {{4, 4}, 6, {3, 3}},
      {{4, 4}, 3, {2, 1}},
      {{4, 4}, 1, {1}},
      {{6, 2}, 4, {3, 1}},
      {{6, 2}, 8, {6, 2}},
      {{4, 4, 4, 4}, 6, {2, 1, 2, 1}},
      {{4, 4, 4, 4}, 2, {1, 1}},
      {{0, 4, 0, 4}, 4, {2, 2}},
      {{32, 32}, 33, {17, 16}},
      {{1, 1, 1}, 3, {1, 1, 1}},
      {{7}, 5, {5}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.cores_of, c.threads);
    const Placement placement = Placement::make(machine_with(c.cores_of), c.threads, "");
    CHECK(workers_per_node(placement) == c.expected);
    CHECK(placement.nodes == c.expected.size());
    CHECK(placement.pinned);
    CHECK(placement.note.empty());
  }
}

TEST_CASE("every thread count on every machine gives each worker a core of its own in the mask") {
  const char* const descriptions[] = {
      "Package:2 [NUMANode(memory=64GiB)] L3:1 Core:4 PU:2",
      "Package:2 Group:2 [NUMANode(memory=32GiB)] [NUMANode(memory=16GiB)] L3:1 Core:4 PU:2",
      "NUMANode:3(memory=8GiB indexes=7,2,5) Core:3 PU:1",
      "Package:1 [NUMANode(memory=8GiB)] L3:4 Core:2 PU:2",
      "NUMANode:1(memory=8GiB) PU:5",
  };
  for (const char* const description : descriptions) {
    const Machine machine = synthetic(description);
    const auto cores = static_cast<unsigned>(machine.cores.size());
    for (unsigned threads = 1; threads <= cores; ++threads) {
      CAPTURE(description, threads);
      const Placement placement = Placement::make(machine, threads, "");
      CHECK(placement.workers.size() == threads);
      CHECK_FALSE(placement.oversubscribed);
      CHECK(ids_are_contiguous(placement));
      std::set<unsigned> used;
      std::map<unsigned, unsigned> node_of_id;
      for (const Worker& worker : placement.workers) {
        const Core& core = machine.cores.at(worker.core);
        CHECK(used.insert(worker.core).second);
        CHECK(worker.processor == core.processors.front());
        CHECK(node_of_id.emplace(worker.node, core.node).first->second == core.node);
        CHECK(worker.node < placement.nodes);
      }
      CHECK(node_of_id.size() == placement.nodes);
    }
  }
}

TEST_CASE("a part of a node is spread over its caches") {
  const Machine machine = synthetic("Package:1 [NUMANode(memory=8GiB)] L3:4 Core:2 PU:2");
  std::vector<unsigned> caches;
  for (const Worker& worker : Placement::make(machine, 4, "").workers) {
    caches.push_back(worker.core / 2);
  }
  CHECK(caches == std::vector<unsigned>{0, 1, 2, 3});
}

TEST_CASE("more workers than cores: placed evenly, pinned nowhere, and said so") {
  const Placement placement = Placement::make(machine_with({2, 2}), 10, "");
  CHECK(placement.oversubscribed);
  CHECK_FALSE(placement.pinned);
  CHECK(placement.note == "10 workers on 4 physical cores: nobody is pinned");
  CHECK(workers_per_node(placement) == std::vector<unsigned>{5, 5});
  std::map<unsigned, int> load;
  for (const Worker& worker : placement.workers) ++load[worker.core];
  CHECK(load.size() == 4);
  for (const auto& [core, workers] : load) CHECK((workers == 2 || workers == 3));

  const Placement single = Placement::make(machine_with({1}), 4, "");
  CHECK(single.note == "4 workers on 1 physical core: nobody is pinned");
  Machine hybrid = machine_with({2});
  hybrid.slow_cores = 4;
  CHECK(Placement::make(hybrid, 3, "").note ==
        "3 workers on 2 physical cores: nobody is pinned (4 slower cores not counted)");
}

TEST_CASE("the user's own OpenMP binding wins") {
  const Placement placement = Placement::make(machine_with({4}), 2, "OMP_PLACES=cores");
  CHECK_FALSE(placement.pinned);
  CHECK_FALSE(placement.oversubscribed);
  CHECK(placement.workers.size() == 2);
  CHECK(placement.note == "OMP_PLACES=cores is set: OpenMP's binding is kept");
}

TEST_CASE("nobody is pinned to the processors of a described machine") {
  const Placement placement =
      Placement::make(synthetic("NUMANode:2(memory=8GiB) Core:2 PU:1"), 2, "");
  CHECK_FALSE(placement.pinned);
  CHECK_FALSE(placement.note.empty());
  CHECK(placement.nodes == 2);
}

TEST_CASE("binding variables are found and named") {
  struct Case {
    const char* proc_bind;
    const char* places;
    const char* gomp;
    const char* kmp;
    const char* expected;
  };
  const Case cases[] = {
      {nullptr, nullptr, nullptr, nullptr, ""},
      {"close", nullptr, nullptr, nullptr, "OMP_PROC_BIND=close"},
      {"true", "cores", nullptr, nullptr, "OMP_PROC_BIND=true"},
      {nullptr, "{0},{1}", nullptr, nullptr, "OMP_PLACES={0},{1}"},
      {nullptr, nullptr, "0-3", nullptr, "GOMP_CPU_AFFINITY=0-3"},
      {nullptr, nullptr, nullptr, "compact", "KMP_AFFINITY=compact"},
      {"false", nullptr, nullptr, nullptr, ""},
      {" FALSE ", "cores", "0-3", "compact", ""},
      {"", "", " ", "", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.expected);
    const ScopedVariable proc_bind("OMP_PROC_BIND", c.proc_bind);
    const ScopedVariable places("OMP_PLACES", c.places);
    const ScopedVariable gomp("GOMP_CPU_AFFINITY", c.gomp);
    const ScopedVariable kmp("KMP_AFFINITY", c.kmp);
    CHECK(user_openmp_binding() == c.expected);
  }
}
