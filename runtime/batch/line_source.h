// Which line a job answers next: the lines of the input in order, without those that have their row
// already and those that another process answers.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/batch/input.h"
#include "runtime/batch/line_claims.h"
#include "runtime/batch/line_set.h"

namespace lockstep::batch {

// The lines that had their rows when the job began.
struct FinishedLines {
  LineSet lines;           // of all processes that share the job
  std::size_t rows = 0;    // in the output of this one
  std::size_t errors = 0;  // error rows among these
};

class LineSource {
 public:
  // Starts at the first line. What it is given must outlive it; null claims: every line is ours.
  // `left`: how many next() will give, where that is known.
  explicit LineSource(InputFile& input, FinishedLines finished = {}, LineClaims* claims = nullptr,
                      std::optional<std::size_t> left = std::nullopt)
      : input_(input), finished_(std::move(finished)), claims_(claims), left_(left) {
    input_.seek(0, 1);
  }

  // False at the end. Throws Error(io).
  bool next(InputLine& line) {
    while (input_.next(line)) {
      const std::size_t index = index_++;
      if (finished_.lines.contains(line.number)) continue;
      if (claims_ == nullptr || claims_->mine(index)) return true;
    }
    at_end_ = true;
    return false;
  }
  // To be called once per step.
  void progress() {
    if (claims_ != nullptr) claims_->progress();
  }

  InputFormat format() const noexcept { return input_.format(); }
  const FinishedLines& finished() const noexcept { return finished_; }
  // Lines that next() gives in all, of `lines` in the input; nothing where that is not known.
  std::optional<std::size_t> count(std::size_t lines) const noexcept {
    if (left_ || claims_ != nullptr) return left_;
    return lines - finished_.rows;
  }
  bool at_end() const noexcept { return at_end_; }

 private:
  InputFile& input_;
  FinishedLines finished_;
  LineClaims* claims_;
  std::optional<std::size_t> left_;
  std::size_t index_ = 0;  // of the next line that is not blank
  bool at_end_ = false;
};

}  // namespace lockstep::batch
