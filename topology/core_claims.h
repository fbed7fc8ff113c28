// Noticing that another process computes on the same cores: two local ranks of a job that were both
// given the whole node, say.
#pragma once

#include <memory>
#include <vector>

namespace lockstep::topology {

// Claims on processors, seen by other processes of this user on this machine and gone with their
// process, however it ends. Engines of one process share them.
class CoreClaims {
 public:
  CoreClaims() = default;
  explicit CoreClaims(const std::vector<unsigned>& processors);

  // Processors (OS indices) that another process has claimed.
  const std::vector<unsigned>& taken() const noexcept { return taken_; }

 private:
  struct Claim;
  std::vector<std::shared_ptr<Claim>> claims_;
  std::vector<unsigned> taken_;
};

// Whether an MPI launcher or Slurm says that this process is one of several on this machine.
bool is_one_of_several_ranks();

}  // namespace lockstep::topology
