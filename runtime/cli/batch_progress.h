// What a batch job shows on stderr while it runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/batch/job.h"
#include "runtime/batch/line_claims.h"
#include "runtime/cli/stopwatch.h"

namespace lockstep::cli {

// Where ranks share the lines as they go.
struct SharedLines {
  std::string label;                          // "rank 0 of 4: "
  const batch::LineClaims* claims = nullptr;  // null: nothing is shared
  std::size_t lines = 0;                      // of the job
  bool is_quiet = false;                      // another rank shows how far all are
};

// Shows a bar on a terminal, else one line per interval; with `show` every finished row.
class BatchProgress final : public batch::JobObserver {
 public:
  BatchProgress(double interval, bool show);

  // Show from now on how far all ranks are.
  void share(SharedLines shared);

  void on_answer(const batch::RowIdentity& row, const batch::Finished& answer) override;
  void on_error(const batch::RequestError& error, const batch::JobStats& stats) override;
  void on_step(const batch::JobStats& stats) override;

  // Since it was made.
  double seconds() const { return watch_.seconds(); }

 private:
  void tell(const batch::JobStats& stats);
  std::string text(const batch::JobStats& stats, bool bar) const;

  double interval_;
  bool show_;
  Stopwatch watch_;
  double last_ = 0;
  std::size_t shown_rows_ = 0;
  bool told_of_bos_ = false;
  SharedLines shared_;
  std::optional<std::size_t> taken_before_;  // by all ranks, at the first step
};

}  // namespace lockstep::cli
