// The thread budget: control groups in fake trees as they are found in the wild, and the sentence
// that tells the user which limit it was.
#include "topology/budget.h"

#include <fstream>

#include "support/catch.h"
#include "topology/described_machine.h"

namespace {

namespace fs = std::filesystem;
using lockstep::test::scratch_dir;
using lockstep::test::synthetic;
using lockstep::topology::cgroup_cpu_limit;
using lockstep::topology::Machine;
using lockstep::topology::thread_budget;
using lockstep::topology::ThreadBudget;

// A fake /proc/self/cgroup and /sys/fs/cgroup.
class Tree {
 public:
  explicit Tree(const std::string& name) : dir_(scratch_dir("cgroup-" + name)) {
    fs::create_directories(root());
  }
  Tree& groups(const std::string& text) {
    std::ofstream(dir_ / "self_cgroup") << text;
    return *this;
  }
  Tree& file(const std::string& path, const std::string& text) {
    const fs::path file = root() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
    return *this;
  }
  Tree& v1(const std::string& group, const std::string& quota, const std::string& period) {
    return file(group + "/cpu.cfs_quota_us", quota).file(group + "/cpu.cfs_period_us", period);
  }
  fs::path root() const { return dir_ / "sys"; }
  std::optional<double> limit() const { return cgroup_cpu_limit(dir_ / "self_cgroup", root()); }

 private:
  fs::path dir_;
};

Machine machine_with_cores(unsigned cores) {
  return synthetic("NUMANode:1(memory=8GiB) Core:" + std::to_string(cores) + " PU:2");
}

}  // namespace

TEST_CASE("version 2 quotas become thread budgets") {
  struct Case {
    const char* cpu_max;
    std::optional<double> limit;
    unsigned threads;  // on a machine with 96 cores
  };
  const Case cases[] = {
      {"150000 100000", 1.5, 1},        {"765000 100000", 7.65, 7},
      {"50000 100000", 0.5, 1},         {"max 100000", std::nullopt, 96},
      {"200000 100000", 2.0, 2},        {"9700000 100000", 97.0, 96},
      {"max", std::nullopt, 96},        {"", std::nullopt, 96},
      {"100000", std::nullopt, 96},     {"0 100000", std::nullopt, 96},
      {"100000 0", std::nullopt, 96},   {"-5 100000", std::nullopt, 96},
      {"1e5 100000", std::nullopt, 96}, {"99999999999999999999 100000", std::nullopt, 96},
  };
  const Machine machine = machine_with_cores(96);
  for (const Case& c : cases) {
    CAPTURE(c.cpu_max);
    Tree tree("v2");
    tree.groups("0::/job\n").file("job/cpu.max", c.cpu_max);
    CHECK(tree.limit() == c.limit);
    CHECK(thread_budget(machine, tree.limit()).threads == c.threads);
  }
}

TEST_CASE("the tightest group on the path decides") {
  Tree parent("v2-parent");
  parent.groups("0::/slurm/job_7/step_0\n")
      .file("slurm/cpu.max", "max 100000")
      .file("slurm/job_7/cpu.max", "300000 100000")
      .file("slurm/job_7/step_0/cpu.max", "max 100000")
      .file("slurm/job_8/cpu.max", "100000 100000");
  CHECK(parent.limit() == 3.0);

  Tree both("v2-both");
  both.groups("0::/a/b\n").file("a/cpu.max", "200000 100000").file("a/b/cpu.max", "50000 10000");
  CHECK(both.limit() == 2.0);

  Tree v1("v1-parent");
  v1.groups("4:cpu,cpuacct:/a/b\n")
      .v1("cpu,cpuacct/a/b", "-1", "100000")
      .v1("cpu,cpuacct/a", "250000", "100000");
  CHECK(v1.limit() == 2.5);
}

TEST_CASE("version 1 in all its mount layouts") {
  struct Case {
    const char* line;
    const char* group;
  };
  const Case cases[] = {
      {"1:cpu:/job\n", "cpu/job"},
      {"4:cpu,cpuacct:/job\n", "cpu,cpuacct/job"},
      {"4:cpu,cpuacct:/job\n", "cpu/job"},
      {"4:cpuacct,cpu:/job\n", "cpuacct,cpu/job"},
      {"9:cpuset,cpu:/job\n", "cpuset,cpu/job"},
      {"2:memory:/elsewhere\n1:cpu:/job\n0::/x\n", "cpu/job"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line, c.group);
    Tree tree("v1");
    tree.groups(c.line).v1(c.group, "150000", "100000");
    CHECK(tree.limit() == 1.5);
    tree.v1(c.group, "-1", "100000");
    CHECK_FALSE(tree.limit().has_value());
  }
}

TEST_CASE("version 1 and 2 side by side") {
  Tree tree("hybrid");
  tree.groups("5:cpu,cpuacct:/job\n3:memory:/job\n0::/scope\n")
      .v1("cpu,cpuacct/job", "400000", "100000")
      .file("unified/scope/cgroup.procs", "");
  CHECK(tree.limit() == 4.0);
  tree.file("unified/scope/cpu.max", "300000 100000");
  CHECK(tree.limit() == 3.0);
}

TEST_CASE("a container sees its own group as the root of the mount") {
  Tree v2("container-v2");
  v2.groups("0::/\n").file("cpu.max", "150000 100000");
  CHECK(v2.limit() == 1.5);

  Tree v1("container-v1");
  v1.groups("3:cpu,cpuacct:/docker/0123abcd\n").v1("cpu,cpuacct", "200000", "100000");
  CHECK(v1.limit() == 2.0);

  Tree hidden("container-hidden");
  hidden.groups("0::/kubepods/pod1/c1\n").file("cpu.max", "765000 100000");
  CHECK(hidden.limit() == 7.65);
}

TEST_CASE("a group outside of what is mounted has no limit that could be seen") {
  Tree tree("outside");
  tree.groups("0::/../../sibling\n")
      .file("cpu.max", "100000 100000")
      .file("sibling/cpu.max", "100000 100000");
  CHECK_FALSE(tree.limit().has_value());
}

TEST_CASE("odd names and damaged files are survived") {
  Tree colon("colon");
  colon.groups("0::/a:b c/d\n").file("a:b c/d/cpu.max", "250000 100000");
  CHECK(colon.limit() == 2.5);

  Tree junk("junk");
  junk.groups("\nno colons\n1:two\n::\n:cpu:\n0::\n0::/gone (deleted)\n");
  CHECK_FALSE(junk.limit().has_value());

  // A folder where a file should be, and no files at all.
  fs::create_directories(junk.root() / "cpu.max");
  CHECK_FALSE(junk.limit().has_value());
  CHECK_FALSE(cgroup_cpu_limit(junk.root() / "absent", junk.root() / "absent").has_value());
}

TEST_CASE("the real control group can be read") {
  const std::optional<double> limit = cgroup_cpu_limit();
  CHECK((!limit || *limit > 0));
}

TEST_CASE("the budget names the limit that decided") {
  const Machine two = machine_with_cores(2);
  CHECK(thread_budget(two, std::nullopt).reason ==
        "2 threads: 2 physical cores in the affinity mask");
  CHECK(thread_budget(two, 2.0).reason == "2 threads: 2 physical cores in the affinity mask");
  CHECK(thread_budget(two, 1.5).reason ==
        "1 thread: cgroup CPU quota of 1.5 rounded down (2 physical cores in the mask)");
  CHECK(thread_budget(two, 1.0).reason ==
        "1 thread: cgroup CPU quota of 1 (2 physical cores in the mask)");
  CHECK(thread_budget(two, 0.25).reason ==
        "1 thread: cgroup CPU quota of 0.25 rounded up to the least possible (2 physical cores in "
        "the mask)");
  CHECK(thread_budget(machine_with_cores(96), 7.65).reason ==
        "7 threads: cgroup CPU quota of 7.65 rounded down (96 physical cores in the mask)");
  CHECK(thread_budget(machine_with_cores(1), std::nullopt).reason ==
        "1 thread: 1 physical core in the affinity mask");
}

TEST_CASE("the budget says what the mask and slower cores take away") {
  Machine machine = machine_with_cores(4);
  machine.total_cores = 24;
  CHECK(thread_budget(machine, std::nullopt).reason ==
        "4 threads: 4 physical cores in the affinity mask of a machine with 24");
  machine.slow_cores = 8;
  CHECK(thread_budget(machine, std::nullopt).reason ==
        "4 threads: 4 fast physical cores in the affinity mask, 8 slower cores left out");
}

TEST_CASE("the budget counts cores, not hardware threads, and is never zero") {
  const ThreadBudget budget = thread_budget(machine_with_cores(8), std::nullopt);
  CHECK(budget.threads == 8);
  CHECK(budget.cores == 8);
  CHECK_FALSE(budget.quota.has_value());
  CHECK(thread_budget(machine_with_cores(8), 0.001).threads == 1);
  CHECK(thread_budget(machine_with_cores(8), 3.999).threads == 3);
  CHECK(thread_budget(machine_with_cores(8), 1e30).threads == 8);
  CHECK(thread_budget(Machine{}, std::nullopt).threads == 1);
}
