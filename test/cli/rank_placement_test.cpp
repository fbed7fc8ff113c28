// Which ranks share processors, and what a rank does about it.
#include "runtime/cli/rank_placement.h"

#include "support/catch.h"
#include "support/scoped_variable.h"

using namespace lockstep;
using namespace lockstep::cli;
using lockstep::test::ScopedVariable;

namespace {

constexpr const char* kDual = "Package:2 [NUMANode(memory=64GiB)] L3:1 Core:4 PU:2";

// A described machine on which Open MPI started ranks.
struct Machine {
  ScopedVariable xml{"HWLOC_XMLFILE", nullptr};
  ScopedVariable text{"HWLOC_SYNTHETIC", kDual};
  ScopedVariable bind{"OMP_PROC_BIND", nullptr}, places{"OMP_PLACES", nullptr};
  ScopedVariable gomp{"GOMP_CPU_AFFINITY", nullptr}, kmp{"KMP_AFFINITY", nullptr};
  ScopedVariable rank, ranks;
  Machine(const char* local_rank, const char* local_ranks)
      : rank("OMPI_COMM_WORLD_LOCAL_RANK", local_rank),
        ranks("OMPI_COMM_WORLD_LOCAL_SIZE", local_ranks) {}
};

}  // namespace

TEST_CASE("ranks with the same machine and mask are sharers") {
  const std::vector<std::string> told = {"m1 0-3", "m2 0-3", "m1 4-7", "m1 0-3",
                                         "m2 0-3", "m1 0-3", "m3 0-3"};
  CHECK(find_sharers(told, 0) == Sharers{0, 3});
  CHECK(find_sharers(told, 3) == Sharers{1, 3});
  CHECK(find_sharers(told, 5) == Sharers{2, 3});
  CHECK(find_sharers(told, 4) == Sharers{1, 2});
  CHECK(find_sharers(told, 2) == Sharers{0, 1});
  CHECK(find_sharers(told, 6) == Sharers{0, 1});
  CHECK(processors_of_this_rank() == processors_of_this_rank());
  CHECK(processors_of_this_rank().size() > 2);
}

TEST_CASE("an unbound rank takes its slice of the machine, and says so") {
  const Machine machine("1", "2");
  EngineOptions options;
  const RankPlacement placement = place_rank(options, std::nullopt);
  CHECK(placement.note == "local rank 1 of 2: node 1, processors 8-15");
  CHECK(placement.warning.empty());
  CHECK(options.processors == std::vector<unsigned>{8, 9, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("what ranks told each other counts more than the launcher's numbers") {
  // Four ranks, two bound to each node: the pair divides its node, which here is the machine.
  const Machine machine("3", "4");
  EngineOptions options;
  CHECK(place_rank(options, Sharers{1, 2}).note == "local rank 1 of 2: node 1, processors 8-15");
  EngineOptions bound;
  CHECK(place_rank(bound, Sharers{0, 1}).note.empty());
  CHECK(bound.processors.empty());
}

TEST_CASE("the user's choice of processors and a binding of OpenMP stand") {
  const Machine machine("1", "2");
  EngineOptions cores;
  cores.processors = {0, 1};
  CHECK(place_rank(cores, std::nullopt).note.empty());
  CHECK(cores.processors == std::vector<unsigned>{0, 1});
  EngineOptions nodes;
  nodes.nodes = {0};
  CHECK(place_rank(nodes, std::nullopt).note.empty());
  CHECK(nodes.processors.empty());
  const ScopedVariable places("OMP_PLACES", "cores");
  EngineOptions bound;
  CHECK(place_rank(bound, std::nullopt).note.empty());
  CHECK(bound.processors.empty());
}

TEST_CASE("a rank that is alone takes everything") {
  const Machine one("0", "1");
  EngineOptions all;
  CHECK(place_rank(all, std::nullopt).note.empty());
  CHECK(all.processors.empty());
  const Machine machine(nullptr, nullptr);
  EngineOptions options;
  CHECK(place_rank(options, std::nullopt).note.empty());
}

TEST_CASE("a rank that mpirun bound to one core of many is warned") {
  topology::Machine machine;
  machine.cores.resize(1);
  machine.total_cores = 96;
  machine.mask_processors = 2;
  machine.allowed_processors = 192;
  const std::string warning = single_core_warning(machine, {1, 2, topology::Launcher::mpi});
  CHECK(warning.find("1 core of 96, and 2 ranks") != std::string::npos);
  CHECK(warning.find("--map-by numa") != std::string::npos);
  // As many ranks as that are meant to have little.
  CHECK(single_core_warning(machine, {1, 64, topology::Launcher::mpi}).empty());
  CHECK(single_core_warning(machine, {0, 1, topology::Launcher::mpi}).empty());
  CHECK(single_core_warning(machine, {1, 2, topology::Launcher::slurm}).empty());
  machine.cores.resize(48);
  CHECK(single_core_warning(machine, {1, 2, topology::Launcher::mpi}).empty());
}

TEST_CASE("ranks of a container share its CPU quota") {
  const Machine described(nullptr, nullptr);
  const topology::Machine machine = topology::Machine::detect();  // of 8 cores
  CHECK(threads_of_quota(machine, std::nullopt, 2) == 0);
  CHECK(threads_of_quota(machine, 8.0, 2) == 4);
  CHECK(threads_of_quota(machine, 5.0, 2) == 2);
  CHECK(threads_of_quota(machine, 1.0, 4) == 1);
  CHECK(threads_of_quota(machine, 16.0, 2) == 0);
}
