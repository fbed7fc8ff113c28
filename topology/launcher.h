// What mpirun or srun says about this process in its environment: which one it is of those that
// were started together. Variables come through a lookup, so that every launcher can be tested on
// any machine.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace lockstep::topology {

// The value of an environment variable, null if it is not set.
using Variables = std::function<const char*(const char* name)>;
// Those of this process.
const char* process_variable(const char* name) noexcept;

enum class Launcher : unsigned char { mpi, slurm };

struct Rank {
  unsigned rank = 0;  // 0-based, less than ranks
  unsigned ranks = 1;
  Launcher launcher = Launcher::mpi;

  bool operator==(const Rank&) const = default;
};

// The place among all processes of the launch, and among those on this machine. Open MPI, MPICH and
// Intel MPI are understood, and tasks of srun; where mpirun runs in a Slurm job, mpirun counts.
// Nothing where no launcher is seen or its numbers make no sense. The batch script of a Slurm job
// has variables like a task, but is none.
std::optional<Rank> rank_in_launch(const Variables& variables);
std::optional<Rank> rank_on_machine(const Variables& variables);

// Whether MPI_Init would find the launcher's service. Without one it would be a lone process at
// best, and under srun end the program.
bool launched_for_mpi(const Variables& variables);

// A whole number in plain decimal, nothing for any other text or null.
std::optional<unsigned> parse_count(const char* text);
// Slurm's short form of tasks per node: node 3 of "2(x3),1" has 1.
std::optional<unsigned> tasks_on_node(std::string_view list, unsigned node);

}  // namespace lockstep::topology
