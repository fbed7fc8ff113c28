// The processes that answer a batch job together, as one of them sees it: whether there are others,
// which files and lines are its own, and what all of them have to agree on. A process that is alone
// goes the same way with nobody to ask.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/batch/agreement.h"
#include "runtime/batch/line_claims.h"
#include "runtime/batch/ranks.h"
#include "runtime/batch/shard.h"
#include "runtime/cli/failure.h"
#include "runtime/cli/rank_placement.h"

namespace lockstep::cli {

class RankTeam {
 public:
  // `shard`: the text of --shard. Starts MPI where that, or the launcher without it, asks for it.
  // Throws Error(usage), Error(no_resource).
  explicit RankTeam(const std::string& shard);

  // Decides whether the ranks share the job. To be called once, before what follows; `identity()`
  // is asked for over MPI only. Throws Error(usage) if the jobs of the ranks do not go together.
  template <class Identity>
  void settle(Identity&& identity) {
    if (ranks_) compare_jobs(identity());
  }

  // A step that all ranks of a job have to manage before any of them goes on. Throws what `work`
  // throws, and ToldElsewhere if it failed on another rank.
  template <class Work>
  void together(Work&& work) {
    std::exception_ptr failure;
    int code = 0;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
      code = code_of_current_exception();
    }
    require_all(failure, code);
  }

  // What must be the same for all ranks of a job, or lines would be answered twice or never: the
  // input and the rows that there are, as this rank sees them. Throws Error(io).
  void require_same(const std::string& seen);

  // From here to finish() every rank is by itself.
  void part_ways() noexcept { meets_at_end_ = true; }

  // Several processes write files of their own.
  bool has_parts() const noexcept { return part_.has_value(); }
  // All of them begin together and tell each other.
  bool is_joint() const noexcept { return ranks_ && has_parts(); }
  // The first of them, who speaks for all.
  bool speaks() const noexcept { return !is_joint() || ranks_->rank() == 0; }
  // "rank 1 of 4: ", to be put before messages; "" for a process alone.
  std::string label() const;
  // `path` itself, or with a rank in its name if there are others.
  std::filesystem::path own_file(const std::filesystem::path& path) const;
  // This process among those that share the job.
  batch::Shard place() const noexcept { return part_.value_or(batch::Shard{}); }
  // Known after settle() where ranks told each other.
  const std::optional<Sharers>& sharers() const noexcept { return sharers_; }

  // The outputs of all others, in this and in earlier runs, for a job that is to `resume` or to
  // begin: where nothing tells whether others of this run have begun, none.
  std::vector<std::filesystem::path> other_files(const std::filesystem::path& path,
                                                 bool resume) const;

  // Which of the job's `lines` lines are this process's; null: all. Valid as long as the team.
  std::unique_ptr<batch::LineClaims> claims(std::size_t lines);

  // How all ended, for a process alone how this one did: waits for the others, and ends MPI. After
  // an error that the others do not know of, where they would wait for this rank in a step that it
  // will not come to, ends them.
  batch::JobEnd finish(const batch::JobEnd& own);

 private:
  void start_ranks();
  void note_that_nothing_is_shared() const;
  void compare_jobs(const batch::JobIdentity& own);
  void require_all(const std::exception_ptr& failure, int code);

  batch::ShardChoice choice_;
  std::unique_ptr<batch::Ranks> ranks_;  // over MPI, or null
  std::optional<batch::Shard> part_;     // this process among those that share the job
  std::optional<Sharers> sharers_;
  bool has_own_job_ = false;   // one of several ranks with different jobs
  bool meets_at_end_ = false;  // the next meeting of all is finish()
};

}  // namespace lockstep::cli
