// Which line a job answers next: the lines of the input in order, without those that have their row
// already and those that another process answers.
#pragma once

#include <cstddef>

#include "runtime/batch/input.h"
#include "runtime/batch/line_claims.h"
#include "runtime/batch/line_set.h"

namespace lockstep::batch {

// The lines whose rows were in the output when the job began.
struct FinishedLines {
  LineSet lines;
  std::size_t rows = 0;
  std::size_t errors = 0;  // error rows among them
};

class LineSource {
 public:
  // Starts at the first line. What it is given must outlive it; null claims: every line is ours.
  explicit LineSource(InputFile& input, FinishedLines finished = {}, LineClaims* claims = nullptr)
      : input_(input), finished_(std::move(finished)), claims_(claims) {
    input_.seek(0, 1);
  }

  // False at the end. Throws Error(io).
  bool next(InputLine& line) {
    while (input_.next(line)) {
      const std::size_t index = index_++;
      if (finished_.lines.contains(line.number)) continue;
      if (claims_ == nullptr || claims_->mine(index)) return true;
    }
    return false;
  }

  InputFormat format() const noexcept { return input_.format(); }
  const FinishedLines& finished() const noexcept { return finished_; }

 private:
  InputFile& input_;
  FinishedLines finished_;
  LineClaims* claims_;
  std::size_t index_ = 0;  // of the next line that is not blank
};

}  // namespace lockstep::batch
