// Places in a launch, read from the variables of launchers that need not be here.
#include "topology/launcher.h"

#include <map>
#include <string>

#include "support/catch.h"
#include "support/scoped_variable.h"

using namespace lockstep::topology;

namespace {

using Environment = std::map<std::string, std::string>;

Variables of(const Environment& environment) {
  return [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

std::optional<Rank> in_launch(const Environment& environment) {
  return rank_in_launch(of(environment));
}
std::optional<Rank> on_machine(const Environment& environment) {
  return rank_on_machine(of(environment));
}

// Task 5 of 7 on the second of two nodes, the way Slurm 22.05 sets it.
const Environment kSlurmTask = {{"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NUM_TASKS", "7"},
                                {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                                {"SLURM_NTASKS", "8"},
                                {"SLURM_TASKS_PER_NODE", "4(x2)"},
                                {"SLURM_PROCID", "5"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_NODEID", "1"}};

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}
Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

}  // namespace

TEST_CASE("without a launcher there is no rank") {
  CHECK_FALSE(in_launch({}));
  CHECK_FALSE(on_machine({}));
  CHECK_FALSE(launched_for_mpi(of({})));
}

TEST_CASE("Open MPI and Hydra number their ranks") {
  const Environment open = {{"OMPI_COMM_WORLD_RANK", "6"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  CHECK(in_launch(open) == Rank{6, 8, Launcher::mpi});
  CHECK(on_machine(open) == Rank{2, 4, Launcher::mpi});
  CHECK(launched_for_mpi(of(open)));
  const Environment hydra = {
      {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  CHECK(in_launch(hydra) == Rank{3, 4, Launcher::mpi});
  CHECK(on_machine(hydra) == Rank{1, 2, Launcher::mpi});
  CHECK(launched_for_mpi(of(hydra)));
}

TEST_CASE("tasks of srun number themselves by step, not by job") {
  CHECK(in_launch(kSlurmTask) == Rank{5, 7, Launcher::slurm});
  CHECK(on_machine(kSlurmTask) == Rank{1, 3, Launcher::slurm});
  CHECK_FALSE(launched_for_mpi(of(kSlurmTask)));
  CHECK(launched_for_mpi(of(with(kSlurmTask, "PMIX_RANK", "5"))));
  // Older versions, and fewer variables.
  const Environment older =
      without(without(kSlurmTask, "SLURM_STEP_NUM_TASKS"), "SLURM_STEP_TASKS_PER_NODE");
  CHECK(in_launch(older) == Rank{5, 8, Launcher::slurm});
  CHECK(on_machine(older) == Rank{1, 4, Launcher::slurm});
  CHECK(on_machine(with(without(older, "SLURM_TASKS_PER_NODE"), "SLURM_NTASKS_PER_NODE", "2")) ==
        Rank{1, 2, Launcher::slurm});
  CHECK_FALSE(on_machine(without(older, "SLURM_TASKS_PER_NODE")));
}

TEST_CASE("a batch script is no task, although Slurm numbers it like one") {
  const Environment script = {{"SLURM_PROCID", "0"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NODEID", "0"},
                              {"SLURM_NTASKS", "2"},
                              {"SLURM_TASKS_PER_NODE", "2"}};
  CHECK_FALSE(in_launch(script));
  CHECK_FALSE(on_machine(script));
}

TEST_CASE("mpirun in a Slurm job counts, not the step that it runs in") {
  Environment both = kSlurmTask;
  both["OMPI_COMM_WORLD_RANK"] = "0";
  both["OMPI_COMM_WORLD_SIZE"] = "2";
  both["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  both["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  CHECK(in_launch(both) == Rank{0, 2, Launcher::mpi});
  CHECK(on_machine(both) == Rank{0, 1, Launcher::mpi});
}

TEST_CASE("numbers that make no sense give no rank") {
  for (const char* const rank : {"", "x", "-1", "4", "1 ", "+1", "99999999999"}) {
    CAPTURE(rank);
    CHECK_FALSE(in_launch({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
    CHECK_FALSE(in_launch(with(without(kSlurmTask, "SLURM_PROCID"), "SLURM_PROCID",
                               std::string(rank) == "4" ? "7" : rank)));
  }
  CHECK_FALSE(in_launch({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  CHECK_FALSE(in_launch({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "0"}}));
}

TEST_CASE("Slurm's short lists of tasks per node are understood") {
  CHECK(tasks_on_node("2", 0) == 2u);
  CHECK_FALSE(tasks_on_node("2", 1));
  for (unsigned node = 0; node < 6; ++node) {
    CAPTURE(node);
    CHECK(tasks_on_node("2(x3),1,16(x2)", node) == (node < 3 ? 2u : node == 3 ? 1u : 16u));
  }
  CHECK_FALSE(tasks_on_node("2(x3),1,16(x2)", 6));
  CHECK(tasks_on_node("3(x4294967295),1(x4294967295)", 4294967295u) == 1u);
  for (const char* const wrong : {"", ",", "x", "2(x)", "2(x3", "2x3", "(x3)", "2(y3)", "-1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(tasks_on_node(wrong, 0));
  }
}

TEST_CASE("the process's own variables are looked up") {
  const lockstep::test::ScopedVariable rank("OMPI_COMM_WORLD_RANK", "1");
  const lockstep::test::ScopedVariable ranks("OMPI_COMM_WORLD_SIZE", "2");
  CHECK(rank_in_launch(process_variable) == Rank{1, 2, Launcher::mpi});
}
