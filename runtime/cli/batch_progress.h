// What a batch job shows on stderr while it runs.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/batch/job.h"
#include "runtime/cli/stopwatch.h"

namespace lockstep::cli {

// Shows a bar on a terminal, else one line per interval; with `show` every finished row.
class BatchProgress final : public batch::JobObserver {
 public:
  BatchProgress(double interval, bool show);

  void on_answer(const batch::RowIdentity& row, const batch::Finished& answer) override;
  void on_error(const batch::RequestError& error) override;
  void on_step(const batch::JobStats& stats) override;

  // Since it was made.
  double seconds() const { return watch_.seconds(); }

 private:
  double interval_;
  bool show_;
  Stopwatch watch_;
  double last_ = 0;
  std::size_t shown_rows_ = 0;
};

}  // namespace lockstep::cli
