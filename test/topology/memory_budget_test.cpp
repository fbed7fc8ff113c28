// How much memory there is for the process: fake trees of control files, and this machine.
#include "topology/memory_budget.h"

#include <sys/resource.h>

#include <fstream>

#include "support/catch.h"
#include "topology/described_machine.h"

namespace {

namespace fs = std::filesystem;
using lockstep::test::scratch_dir;
using lockstep::topology::memory_budget;
using lockstep::topology::MemoryBudget;
using lockstep::topology::MemorySources;

constexpr std::uint64_t kMiB = 1 << 20;

// A fake /proc, /sys/fs/cgroup and /sys/devices/system/node.
class Tree {
 public:
  explicit Tree(const std::string& name) : dir_(scratch_dir("memory-" + name)) {}
  Tree& file(const std::string& path, const std::string& text) {
    fs::create_directories((dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text << "\n";
    return *this;
  }
  Tree& available(std::uint64_t mebibytes) {
    return file("proc/meminfo", "MemTotal:       99999999 kB\nMemFree: 1 kB\nMemAvailable:   " +
                                    std::to_string(mebibytes * 1024) + " kB");
  }
  Tree& groups(const std::string& text) { return file("proc/self/cgroup", text); }
  MemoryBudget budget(const std::vector<unsigned>& nodes = {}) const {
    return memory_budget(nodes, MemorySources{dir_ / "proc", dir_ / "cgroup", dir_ / "nodes"});
  }
  std::string path(const std::string& below) const { return (dir_ / below).string(); }

 private:
  fs::path dir_;
};

}  // namespace

TEST_CASE("without limits, the memory that the machine has left counts") {
  Tree tree("plain");
  tree.available(700).groups("0::/");
  CHECK(tree.budget().bytes == 700 * kMiB);
  CHECK(tree.budget().reason == "memory of the machine");
  CHECK(Tree("empty").budget().bytes == UINT64_MAX);
}

TEST_CASE("the tightest memory limit on the path of groups decides, less what is used") {
  Tree tree("v2");
  tree.available(9000).groups("0::/slurm/job_7/step_0");
  tree.file("cgroup/memory.max", "max");
  tree.file("cgroup/slurm/memory.max", std::to_string(4000 * kMiB));
  tree.file("cgroup/slurm/memory.current", std::to_string(3500 * kMiB));
  tree.file("cgroup/slurm/job_7/memory.max", std::to_string(1000 * kMiB));
  tree.file("cgroup/slurm/job_7/memory.current", std::to_string(300 * kMiB));
  CHECK(tree.budget().bytes == 500 * kMiB);
  CHECK(tree.budget().reason == "limit of the control group " + tree.path("cgroup/slurm"));
  // File cache is given back before anybody is killed.
  tree.file("cgroup/slurm/memory.stat", "anon 1\ninactive_file " + std::to_string(900 * kMiB) +
                                            "\nactive_file " + std::to_string(100 * kMiB));
  CHECK(tree.budget().bytes == 700 * kMiB);
  CHECK(tree.budget().reason == "limit of the control group " + tree.path("cgroup/slurm/job_7"));
  tree.file("cgroup/slurm/job_7/step_0/memory.high", std::to_string(200 * kMiB));
  CHECK(tree.budget().bytes == 200 * kMiB);
  tree.file("cgroup/slurm/job_7/step_0/memory.current", std::to_string(250 * kMiB));
  CHECK(tree.budget().bytes == 0);
}

TEST_CASE("version 1 limits count too, and its largest number is none") {
  Tree tree("v1");
  tree.available(9000).groups("5:memory:/job\n4:cpu,cpuacct:/job\n0::/");
  tree.file("cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  tree.file("cgroup/memory/job/memory.limit_in_bytes", std::to_string(800 * kMiB));
  tree.file("cgroup/memory/job/memory.usage_in_bytes", std::to_string(100 * kMiB));
  tree.file("cgroup/memory/job/memory.stat", "total_inactive_file " + std::to_string(30 * kMiB));
  CHECK(tree.budget().bytes == 730 * kMiB);
  tree.groups("5:memory:/../elsewhere");
  CHECK(tree.budget().bytes == 9000 * kMiB);
}

TEST_CASE("a process that stays on some nodes has what is free there") {
  Tree tree("nodes");
  tree.available(9000);
  for (const int node : {0, 1, 2}) {
    const std::string start = "Node " + std::to_string(node) + " ";
    tree.file("nodes/node" + std::to_string(node) + "/meminfo",
              start + "MemTotal: 4096000 kB\n" + start +
                  "MemFree:  " + std::to_string((node + 1) * 1024) + " kB\n" + start +
                  "Active(file): 1024 kB\n" + start + "Inactive(file): 2048 kB");
  }
  CHECK(tree.budget({1}).bytes == 5 * kMiB);
  CHECK(tree.budget({1}).reason == "memory of NUMA node 1");
  CHECK(tree.budget({0, 2}).bytes == 10 * kMiB);
  CHECK(tree.budget({0, 2}).reason == "memory of NUMA nodes 0, 2");
  CHECK(tree.budget({9}).bytes == 9000 * kMiB);  // nothing is known of it
}

TEST_CASE("this machine has memory, and an address space limit is seen") {
  const MemoryBudget now = memory_budget({});
  CHECK(now.bytes > kMiB);
  CHECK_FALSE(now.reason.empty());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  if (before.rlim_cur != RLIM_INFINITY) return;
  Tree tree("ulimit");
  tree.available(9000000).file("proc/self/status",
                               "VmSize:   " + std::to_string(100 * 1024) + " kB");
  rlimit tight = before;
  tight.rlim_cur = std::uint64_t{1} << 42;  // a limit, but no hindrance
  REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
  const MemoryBudget limited = tree.budget();
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(limited.bytes == (std::uint64_t{1} << 42) - 100 * kMiB);
  CHECK(limited.reason == "limit of the address space (ulimit -v)");
}
