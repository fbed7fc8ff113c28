// Tables of variable names, most specific launcher first.
#include "topology/launcher.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <system_error>

namespace lockstep::topology {
namespace {

struct Names {
  const char* rank;
  const char* ranks;
};
// Open MPI; Hydra, which starts MPICH and Intel MPI, and srun --mpi=pmi2.
constexpr Names kLaunch[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                             {"PMI_RANK", "PMI_SIZE"}};
constexpr Names kMachine[] = {{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                              {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<Rank> valid(std::optional<unsigned> rank, std::optional<unsigned> ranks,
                          Launcher launcher) {
  if (!rank || !ranks || *rank >= *ranks) return std::nullopt;
  return Rank{*rank, *ranks, launcher};
}

std::optional<unsigned> parse_number(std::string_view text) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || last != end) return std::nullopt;
  return value;
}

bool is_slurm_task(const Variables& variables) { return variables("SLURM_STEP_ID") != nullptr; }

// Tasks of this step on this node. The step's own list first: a job's is inherited by its steps.
std::optional<unsigned> slurm_local_tasks(const Variables& variables) {
  const unsigned node = parse_count(variables("SLURM_NODEID")).value_or(0);
  for (const char* const name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    if (const char* const list = variables(name)) return tasks_on_node(list, node);
  }
  return parse_count(variables("SLURM_NTASKS_PER_NODE"));
}

}  // namespace

const char* process_variable(const char* name) noexcept { return std::getenv(name); }

std::optional<unsigned> parse_count(const char* text) {
  return text == nullptr ? std::nullopt : parse_number(text);
}

std::optional<unsigned> tasks_on_node(std::string_view list, unsigned node) {
  for (std::uint64_t first = 0;;) {
    const std::size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    std::optional<unsigned> nodes = 1;
    if (const std::size_t times = part.find("(x"); times != part.npos && part.back() == ')') {
      nodes = parse_number(part.substr(times + 2, part.size() - times - 3));
      part = part.substr(0, times);
    }
    const std::optional<unsigned> tasks = parse_number(part);
    if (!tasks || !nodes) return std::nullopt;
    first += *nodes;
    if (node < first) return tasks;
    if (comma == list.npos) return std::nullopt;
    list.remove_prefix(comma + 1);
  }
}

std::optional<Rank> rank_in_launch(const Variables& variables) {
  for (const auto& [rank, ranks] : kLaunch) {
    if (variables(ranks) == nullptr) continue;
    return valid(parse_count(variables(rank)), parse_count(variables(ranks)), Launcher::mpi);
  }
  if (!is_slurm_task(variables)) return std::nullopt;
  const char* const step_tasks = variables("SLURM_STEP_NUM_TASKS");
  return valid(parse_count(variables("SLURM_PROCID")),
               parse_count(step_tasks != nullptr ? step_tasks : variables("SLURM_NTASKS")),
               Launcher::slurm);
}

std::optional<Rank> rank_on_machine(const Variables& variables) {
  for (const auto& [rank, ranks] : kMachine) {
    if (variables(ranks) == nullptr) continue;
    return valid(parse_count(variables(rank)), parse_count(variables(ranks)), Launcher::mpi);
  }
  if (!is_slurm_task(variables)) return std::nullopt;
  return valid(parse_count(variables("SLURM_LOCALID")), slurm_local_tasks(variables),
               Launcher::slurm);
}

bool launched_for_mpi(const Variables& variables) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (variables(name) != nullptr) return true;
  }
  return false;
}

}  // namespace lockstep::topology
