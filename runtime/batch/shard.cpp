// Numbers from the command line and from Slurm's variables.
#include "runtime/batch/shard.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "lockstep/error.h"

namespace lockstep::batch {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("--shard {}: {}", text, why));
}

Shard parse_fraction(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto number = [](std::string_view part) {
    return topology::parse_count(std::string(part).c_str());
  };
  const std::optional<unsigned> index = number(text.substr(0, slash));
  const std::optional<unsigned> count =
      slash == text.npos ? std::nullopt : number(text.substr(slash + 1));
  if (!index || !count) {
    refuse(text, "must be i/n such as 0/4, or slurm, mpi, auto or none");
  }
  if (*index >= *count) {
    refuse(text, *count == 0
                     ? std::string("there is no shard of 0")
                     : fmt::format("the shards of {0} are 0/{0} to {1}/{0}", *count, *count - 1));
  }
  return {*index, *count};
}

// A variable that has to be there and be a number.
unsigned slurm_number(const topology::Variables& variables, const char* name) {
  const char* const value = variables(name);
  if (value == nullptr) refuse("slurm", fmt::format("{} is not set", name));
  const std::optional<unsigned> number = topology::parse_count(value);
  if (!number) refuse("slurm", fmt::format("{}=\"{}\" is not a number", name, value));
  return *number;
}

// The place in a job array. An array with holes, or one task of it alone, has numbers that cannot
// be counted through.
Shard array_shard(const topology::Variables& variables) {
  if (variables("SLURM_ARRAY_TASK_ID") == nullptr) return {};
  const unsigned id = slurm_number(variables, "SLURM_ARRAY_TASK_ID");
  const unsigned low = slurm_number(variables, "SLURM_ARRAY_TASK_MIN");
  const unsigned high = slurm_number(variables, "SLURM_ARRAY_TASK_MAX");
  const unsigned count = slurm_number(variables, "SLURM_ARRAY_TASK_COUNT");
  const unsigned step = slurm_number(variables, "SLURM_ARRAY_TASK_STEP");
  const bool regular = step > 0 && low <= id && id <= high && (id - low) % step == 0 &&
                       (high - low) / step + 1 == count;
  if (!regular) {
    refuse("slurm", fmt::format("the array has holes ({} tasks of {} to {} in steps of {}); give "
                                "--shard i/n, or an array such as 0-{}",
                                count, low, high, step, count == 0 ? 0 : count - 1));
  }
  return {(id - low) / step, count};
}

// The place in a step of srun.
Shard task_shard(const topology::Variables& variables) {
  if (variables("SLURM_STEP_ID") == nullptr) return {};
  const char* const tasks =
      variables("SLURM_STEP_NUM_TASKS") != nullptr ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const Shard shard{slurm_number(variables, "SLURM_PROCID"), slurm_number(variables, tasks)};
  if (shard.index >= shard.count) {
    refuse("slurm", fmt::format("SLURM_PROCID={} with {}={}", shard.index, tasks, shard.count));
  }
  return shard;
}

Shard slurm_shard(const topology::Variables& variables) {
  const bool in_array = variables("SLURM_ARRAY_TASK_ID") != nullptr;
  const bool in_step = variables("SLURM_STEP_ID") != nullptr;
  if (!in_array && !in_step) {
    const char* const tasks = variables("SLURM_NTASKS");
    if (tasks != nullptr && variables("SLURM_PROCID") != nullptr) {
      refuse("slurm", fmt::format("this is the batch script, not one of its {} tasks: put srun "
                                  "before the command (SLURM_STEP_ID is not set)",
                                  tasks));
    }
    refuse("slurm",
           "neither SLURM_ARRAY_TASK_ID nor SLURM_STEP_ID is set: this is no array task "
           "and was not started by srun");
  }
  const Shard array = array_shard(variables);
  const Shard task = task_shard(variables);
  return {array.index * task.count + task.index, array.count * task.count};
}

Shard launcher_shard(const topology::Variables& variables) {
  const std::optional<topology::Rank> rank = topology::rank_in_launch(variables);
  if (rank && rank->launcher == topology::Launcher::mpi) return {rank->rank, rank->ranks};
  if (!rank && variables("SLURM_ARRAY_TASK_ID") == nullptr) {
    refuse("auto",
           "no launcher's variables are set: this process was started neither by mpirun "
           "nor by srun, and is no array task");
  }
  return slurm_shard(variables);
}

}  // namespace

ShardChoice parse_shard(std::string_view text, const topology::Variables& variables) {
  if (text.empty()) return {};
  if (text == "none") return {Sharing::none, {}};
  if (text == "mpi") return {Sharing::mpi, {}};
  if (text == "slurm") return {Sharing::fixed, slurm_shard(variables)};
  if (text == "auto") return {Sharing::fixed, launcher_shard(variables)};
  return {Sharing::fixed, parse_fraction(text)};
}

}  // namespace lockstep::batch
