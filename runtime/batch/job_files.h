// The files of a batch job, from the checks before a model is loaded to the finished output: input,
// output, what an earlier run left in it, and the record of what rows are made from.
//
//   JobFiles files(options, record);      // all checks; nothing has changed when one fails
//   if (!files.complete()) { ... load, then files.begin(record) and run_job(...) }
//   files.finish();
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/batch/input.h"
#include "runtime/batch/line_source.h"
#include "runtime/batch/output.h"
#include "runtime/batch/record.h"
#include "runtime/batch/resume.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

struct JobFilesOptions {
  std::filesystem::path input;
  std::filesystem::path output;  // "-": standard output
  InputFormat format = InputFormat::jsonl;
  bool resume = false;  // go on with an output that exists
  bool sorted = false;  // rows in the order of the input in the end
  // Outputs of other processes for the same input, now or in an earlier run. To go on, their rows
  // count as there, as far as they are whole; otherwise none of these files may exist.
  std::vector<std::filesystem::path> others = {};
  StopFlags flags = {};
};

class JobFiles {
 public:
  // Reads the input once, and an output that is to be resumed. `known`: the options and the model
  // as far as they are known before it is loaded. Throws Error: cannot_create for an output that
  // exists and is not to be resumed, or that another process writes; bad_input for an input that
  // cannot be used, rows of another job, and a changed input, model or option; interrupted.
  JobFiles(const JobFilesOptions& options, const JobRecord& known);

  const InputSurvey& survey() const noexcept { return survey_; }
  // One line each about what was found: resumed rows, a torn row, a missing record.
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  // Rows that were there.
  const FinishedLines& finished() const noexcept { return existing_.finished; }
  // Rows that were there in this output and in others.
  std::size_t finished_by_all() const noexcept { return finished_by_all_; }
  // Lines without a row that are this process's; of all of them where `claims` are not fixed (null:
  // all are ours). Reads the input once more for fixed claims.
  std::size_t left(LineClaims* claims = nullptr);
  // There is nothing to compute.
  bool complete(LineClaims* claims = nullptr) { return left(claims) == 0; }
  // What has to be the same for processes that begin together: hashes of the input and of the set
  // of finished lines.
  std::string state() const;

  // Compares once more with all options, writes the record, and opens the output: a new one, or
  // repaired and ready for more rows. Throws as the constructor does, and Error(io).
  RowWriter& begin(const JobRecord& record);
  // The lines to answer. `claims` (null: all are ours) must outlive it.
  LineSource lines(LineClaims* claims = nullptr);
  // Closes the output; with `all_done` sorts it first, if that was asked for: killed meanwhile, all
  // rows stay. Throws Error(io), Error(interrupted).
  void finish(bool all_done);

 private:
  struct Found {
    std::filesystem::path output;
    JobRecord record;
  };

  void open_existing();
  void open_others();
  void read_records();
  void compare_input(const Found& found);
  void compare_options(const JobRecord& now, bool partial) const;
  void scan();
  void scan_own();
  void sort();
  bool is_stream() const { return options_.output == "-"; }
  [[noreturn]] static void refuse(const Found& found, const std::string& what);

  JobFilesOptions options_;
  InputFile input_;
  Descriptor file_;  // an existing output, until begin()
  std::uint64_t size_found_ = 0;
  std::vector<RowFile> others_;        // that have rows
  std::vector<Found> records_;         // of this output and the others, where there are any
  std::optional<JobRecord> recorded_;  // of this output
  std::size_t finished_by_all_ = 0;
  std::optional<std::size_t> left_;
  InputSurvey survey_;
  ExistingRows existing_;
  std::optional<RowWriter> rows_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::batch
