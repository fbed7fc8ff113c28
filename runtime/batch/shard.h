// Dividing a job among processes that know nothing of each other: by line number.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/batch/line_claims.h"
#include "topology/launcher.h"

namespace lockstep::batch {

struct Shard {
  unsigned index = 0;  // 0-based, less than count
  unsigned count = 1;

  bool operator==(const Shard&) const = default;
};

// Every count-th line. Neighbours go to different processes: where lines get longer towards the end
// of a file, they do so for all.
class StaticShard final : public LineClaims {
 public:
  explicit StaticShard(const Shard& shard) : shard_(shard) {}
  bool mine(std::size_t index) override { return index % shard_.count == shard_.index; }

 private:
  Shard shard_;
};

// How the processes of a launch divide a job.
enum class Sharing : unsigned char {
  automatic,  // by MPI if this process is one of several MPI ranks, else not at all
  none,
  mpi,
  fixed,  // by number: `shard`
};

struct ShardChoice {
  Sharing sharing = Sharing::automatic;
  Shard shard;
};

// The text of --shard: "" (automatic), "none", "mpi", "i/n", "slurm" (numbers of an array task, of
// a task of srun, or both) or "auto" (numbers of whatever launcher there is). Throws Error(usage)
// that names what is wrong or which variable is missing.
ShardChoice parse_shard(std::string_view text, const topology::Variables& variables);

}  // namespace lockstep::batch
