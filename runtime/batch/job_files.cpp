// The order of the checks matters: causes before effects. A changed input is named as such, not by
// the first row whose id does not fit any more.
#include "runtime/batch/job_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "lockstep/error.h"
#include "runtime/batch/collate.h"
#include "runtime/batch/replacement.h"

namespace lockstep::batch {

namespace {

const char* plural(std::size_t count, const char* one, const char* many) {
  return count == 1 ? one : many;
}

bool is_taken(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

}  // namespace

JobFiles::JobFiles(const JobFilesOptions& options, const JobRecord& known)
    : options_(options), input_(options.input, options.format) {
  if (!is_stream()) open_existing();
  if (size_found_ > 0) recorded_ = read_record(options_.output);
  SurveyOptions how;
  how.prefix = recorded_ ? recorded_->input.bytes : 0;
  how.keep_ids = size_found_ > 0;
  how.flags = options_.flags;
  survey_ = survey_input(input_, how);
  if (size_found_ == 0) return;
  if (recorded_) {
    compare_input();
    compare_options(known, true);
  }
  scan();
  survey_.ids = {};
}

// Without rows in it an existing output is like a new one.
void JobFiles::open_existing() {
  const std::filesystem::path& path = options_.output;
  if (!is_taken(path)) {
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) return;
    throw Error(ErrorCode::cannot_create,
                fmt::format("{}: the folder {} does not exist", path.string(), folder.string()));
  }
  if (!options_.resume) {
    throw Error(ErrorCode::cannot_create,
                fmt::format("{}: exists already; go on with it by --resume, or choose another name",
                            path.string()));
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::cannot_create,
                fmt::format("{}: no file; choose another name", path.string()));
  }
  file_ = open_locked(path, O_RDWR | O_APPEND);
  if (!file_.is_open()) {
    throw Error(ErrorCode::cannot_create,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  }
  size_found_ = ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

void JobFiles::refuse(const std::string& what) const {
  throw Error(
      ErrorCode::bad_input,
      fmt::format("{}: cannot be resumed: {}; rerun as before, choose another --output, or remove "
                  "{} if old and new rows may be mixed",
                  options_.output.string(), what, record_path(options_.output).string()));
}

void JobFiles::compare_input() {
  const FileStamp& then = recorded_->input;
  const ContentHash& now = survey_.content;
  const bool prefix_is_same = now.prefix() && hash_text(*now.prefix()) == then.hash;
  if (prefix_is_same && now.bytes() == then.bytes) return;
  if (!prefix_is_same || !input_.line_ends_at(then.bytes)) {
    refuse(fmt::format("the input {} has changed (it was {} bytes with hash {}, now {} with {})",
                       options_.input.string(), then.bytes, then.hash, now.bytes(),
                       hash_text(now.value())));
  }
  const std::size_t more = survey_.lines - recorded_->input_lines;
  notes_.push_back(fmt::format("the input has grown by {} {} since the job began", more,
                               plural(more, "line", "lines")));
}

void JobFiles::compare_options(const JobRecord& now, bool partial) const {
  const std::vector<Change> list = changes(*recorded_, now, {.partial = partial});
  if (!list.empty()) refuse(describe(list));
}

void JobFiles::scan() {
  existing_ = scan_rows(RowFile(options_.output, file_.get()), survey_.ids, options_.flags);
  const FinishedLines& finished = existing_.finished;
  notes_.push_back(
      fmt::format("resumed: {} of {} rows were there{}", finished.rows, survey_.lines,
                  finished.errors == 0 ? "" : fmt::format(" ({} error rows)", finished.errors)));
  if (existing_.lacks_newline) {
    notes_.push_back("the last row lacked nothing but its newline: that is added");
  } else if (existing_.torn() > 0) {
    notes_.push_back(fmt::format("a torn last row of {} {} is cut off", existing_.torn(),
                                 plural(existing_.torn(), "byte", "bytes")));
  }
  if (existing_.repeated > 0) {
    notes_.push_back(fmt::format("warning: {} {} twice, byte for byte; they are kept",
                                 existing_.repeated,
                                 plural(existing_.repeated, "row is there", "rows are there")));
  }
  if (!recorded_ && finished.rows > 0) {
    notes_.push_back(
        fmt::format("warning: there is no {}, so whether input, model and options are "
                    "those of the first run is not known",
                    record_path(options_.output).string()));
  }
}

RowWriter& JobFiles::begin(const JobRecord& record) {
  if (is_stream()) return rows_.emplace(options_.flags);
  if (recorded_) compare_options(record, false);
  if (!file_.is_open()) {
    rows_.emplace(options_.output);
  } else {
    repair_tail(options_.output, file_.get(), existing_);
    rows_.emplace(options_.output, std::move(file_), existing_.bytes);
  }
  JobRecord whole = record;
  whole.input = {survey_.content.bytes(), hash_text(survey_.content.value())};
  whole.input_lines = survey_.lines;
  if (recorded_ != whole) write_record(options_.output, whole);
  return *rows_;
}

void JobFiles::finish(bool all_done) {
  if (is_stream()) return;
  const bool computed = rows_.has_value();
  if (!computed && file_.is_open()) {
    repair_tail(options_.output, file_.get(), existing_);
    rows_.emplace(options_.output, std::move(file_), existing_.bytes);
  } else if (!computed) {
    rows_.emplace(options_.output);  // of an input without requests
  }
  if (options_.sorted && all_done && (computed || !existing_.in_order)) sort();
  rows_->close();
}

// The old output stays locked until the sorted one, locked as well, has its name.
void JobFiles::sort() {
  const RowFile file(options_.output);
  Replacement sorted(options_.output);
  CollateOptions how;
  how.last_line = survey_.last_line;
  how.flags = options_.flags;
  collate({&file, 1}, how, [&](std::string_view row) { sorted.write(row); });
  sorted.commit();
}

}  // namespace lockstep::batch
