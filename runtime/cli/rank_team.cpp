// See rank_team.h. Between settle() and finish() ranks meet in together() alone, before anything is
// computed; from then on nobody waits for anybody, and a rank that dies leaves the others working
// until its launcher ends them.
#include "runtime/cli/rank_team.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "runtime/batch/chunk_claims.h"
#include "runtime/batch/rank_files.h"
#include "runtime/cli/console.h"
#include "runtime/mpi/mpi_ranks.h"
#include "topology/launcher.h"

namespace lockstep::cli {
namespace {

std::optional<topology::Rank> launch() {
  return topology::rank_in_launch(topology::process_variable);
}

bool is_one_of_several() {
  const std::optional<topology::Rank> rank = launch();
  return rank && rank->ranks > 1;
}

}  // namespace

RankTeam::RankTeam(const std::string& shard)
    : choice_(batch::parse_shard(shard, topology::process_variable)) {
  const bool has_mpi = !mpi::library().empty();
  const bool is_launched = topology::launched_for_mpi(topology::process_variable);
  if (choice_.sharing == batch::Sharing::mpi) {
    if (has_mpi && !is_launched) {
      throw Error(ErrorCode::usage,
                  "--shard mpi: this process was not started by an MPI launcher (mpirun, or srun "
                  "--mpi=pmix)");
    }
    start_ranks();
  } else if (choice_.sharing == batch::Sharing::fixed) {
    part_ = choice_.shard;
  } else if (choice_.sharing == batch::Sharing::automatic && is_one_of_several()) {
    if (has_mpi && is_launched) {
      start_ranks();
    } else {
      note_that_nothing_is_shared();
    }
  }
}

void RankTeam::start_ranks() {
  ranks_ = mpi::start();
  const unsigned seen = ranks_->ranks();
  const std::optional<topology::Rank> told = launch();
  if (!told || told->ranks == seen) return;
  ranks_->finish();
  ranks_.reset();
  throw Error(ErrorCode::usage,
              fmt::format("the launcher started {} ranks, {} sees {}: is the launcher that of "
                          "another MPI? --shard auto shares the job without MPI",
                          told->ranks, mpi::library(), seen));
}

void RankTeam::note_that_nothing_is_shared() const {
  const topology::Rank rank = *launch();
  if (rank.rank != 0) return;
  const bool slurm = rank.launcher == topology::Launcher::slurm;
  const std::string_view mpi = mpi::library().empty() ? "; this lockstep was built without MPI"
                               : slurm                ? ", and so does srun --mpi=pmix"
                                                      : "";
  show_note(
      fmt::format("{} {} were started, and each answers the whole input; --shard {} divides "
                  "it among them{}; --shard none hides this note",
                  rank.ranks, slurm ? "tasks" : "ranks", slurm ? "slurm" : "auto", mpi));
}

void RankTeam::compare_jobs(const batch::JobIdentity& own) {
  sharers_ = find_sharers(ranks_->gather(processors_of_this_rank()), ranks_->rank());
  bool one_job = false;
  try {
    one_job = batch::have_one_job(*ranks_, own);
  } catch (const Error& error) {
    // All ranks come here with the same words.
    meets_at_end_ = true;
    if (ranks_->rank() != 0) throw ToldElsewhere(static_cast<int>(error.code()));
    throw;
  }
  if (one_job) {
    part_ = batch::Shard{ranks_->rank(), ranks_->ranks()};
    return;
  }
  has_own_job_ = meets_at_end_ = true;
  if (ranks_->rank() == 0) {
    show_note(fmt::format("the {} ranks have outputs of their own: each answers its whole input",
                          ranks_->ranks()));
  }
}

void RankTeam::require_all(const std::exception_ptr& failure, int code) {
  if (ranks_ && !has_own_job_) {
    const std::optional<batch::Failure> first = batch::first_failure(*ranks_, code);
    if (!first) return;
    meets_at_end_ = true;
    if (first->rank != ranks_->rank()) throw ToldElsewhere(first->code);
  }
  if (failure) std::rethrow_exception(failure);
}

void RankTeam::require_same(const std::string& seen) {
  if (!is_joint()) return;
  const std::optional<unsigned> other = batch::first_other(*ranks_, seen);
  if (!other) return;
  meets_at_end_ = true;
  if (!speaks()) throw ToldElsewhere(static_cast<int>(ErrorCode::io));
  throw Error(ErrorCode::io,
              fmt::format("rank {} sees another input or other rows than rank 0; all machines must "
                          "see the same files, and an earlier run must have ended: try --resume "
                          "again",
                          *other));
}

std::string RankTeam::label() const {
  if (ranks_) return fmt::format("rank {} of {}: ", ranks_->rank(), ranks_->ranks());
  if (part_) return fmt::format("rank {} of {}: ", part_->index, part_->count);
  return "";
}

std::filesystem::path RankTeam::own_file(const std::filesystem::path& path) const {
  return part_ ? batch::rank_file(path, part_->index) : path;
}

std::vector<std::filesystem::path> RankTeam::other_files(const std::filesystem::path& path,
                                                         bool resume) const {
  if (!resume && !is_joint()) return {};
  std::vector<std::filesystem::path> files = batch::find_rank_files(path);
  files.push_back(path);
  std::erase(files, own_file(path));
  return files;
}

std::unique_ptr<batch::LineClaims> RankTeam::claims(std::size_t lines) {
  if (!part_) return nullptr;
  if (!is_joint()) return std::make_unique<batch::StaticShard>(*part_);
  batch::Ranks* const ranks = ranks_.get();
  // Every rank begins with the chunk of its own number.
  return std::make_unique<batch::ChunkClaims>(
      lines, part_->index, part_->count, [ranks] { return ranks->ranks() + ranks->count_up(); },
      [ranks] { ranks->progress(); });
}

batch::JobEnd RankTeam::finish(const batch::JobEnd& own) {
  if (!ranks_) return own;
  if (!meets_at_end_) {
    ranks_->break_off(own.code);
    return own;
  }
  // Ranks with jobs of their own end with codes of their own.
  const batch::JobEnd all = batch::end_of_all(*ranks_, own);
  ranks_->finish();
  return is_joint() ? all : own;
}

}  // namespace lockstep::cli
