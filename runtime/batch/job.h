// A batch job: reads requests as slots free up, advances them together, writes each row when it is
// finished. One output row per input line, whatever happens. Memory depends on the slots, not on
// the number of lines.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/batch/input.h"
#include "runtime/batch/line_source.h"
#include "runtime/batch/output.h"
#include "runtime/batch/request.h"
#include "runtime/batch/scheduler.h"
#include "runtime/batch/step_model.h"

namespace lockstep::batch {

struct JobStats {
  // Rows that the output has in the end. Where processes take lines as they go: as far as this one
  // has taken any.
  std::size_t total = 0;
  std::size_t rows = 0;                 // that it has so far, error rows included
  std::size_t resumed = 0;              // of these, rows that were there when the job began
  std::size_t errors = 0;               // error rows, those that were there included
  std::size_t non_finite = 0;           // of this run's, because of NaN or infinite logits
  std::size_t doubled_bos = 0;          // prompts of this run that begin with two BOS tokens
  std::size_t active = 0;               // sequences that run or wait
  std::uint64_t prompt_tokens = 0;      // evaluated
  std::uint64_t cached_tokens = 0;      // of prompts, that were in the cache
  std::uint64_t recomputed_tokens = 0;  // evaluated again after an interruption
  std::uint64_t output_tokens = 0;
  std::uint64_t preemptions = 0;  // sequences that had to wait again for room in the cache
  std::uint64_t steps = 0;
  std::uint64_t weight_bytes = 0;
  // Spent in steps, evaluating and sampling: those with tokens of prompts alone, those in which all
  // sequences answered, and those with both.
  double prompt_seconds = 0, answer_seconds = 0, mixed_seconds = 0;
  bool interrupted = false;  // stopped before all rows were written

  double step_seconds() const noexcept { return prompt_seconds + answer_seconds + mixed_seconds; }
};

// Told about every row after it was written, and about every step.
class JobObserver {
 public:
  JobObserver() = default;
  JobObserver(const JobObserver&) = delete;
  JobObserver& operator=(const JobObserver&) = delete;
  virtual ~JobObserver() = default;

  virtual void on_answer(const RowIdentity& row, const Finished& answer) = 0;
  virtual void on_error(const RequestError& error, const JobStats& stats) = 0;
  virtual void on_step(const JobStats& stats) = 0;
};

// Runs the job to its end, or until `stop` becomes true: then the current step is finished, its
// rows are written, and the sequences still in their slots are dropped. Throws Error(io) if a row
// cannot be written, Error(interrupted) if the output is told to give up on one.
JobStats run_job(StepModel& model, LineSource& lines, const InputSurvey& survey, RowWriter& output,
                 const RequestDefaults& defaults, const std::atomic<bool>& stop,
                 JobObserver& observer);

}  // namespace lockstep::batch
