// The order of the checks matters: causes before effects. A changed input is named as such, not by
// the first row whose id does not fit any more.
#include "runtime/batch/job_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
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

[[noreturn]] void refuse_existing(const std::filesystem::path& path) {
  throw Error(ErrorCode::cannot_create,
              fmt::format("{}: exists already; go on with it by --resume, or choose another name",
                          path.string()));
}

bool is_taken(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

}  // namespace

JobFiles::JobFiles(const JobFilesOptions& options, const JobRecord& known)
    : options_(options), input_(options.input, options.format) {
  if (!is_stream()) open_existing();
  open_others();
  const bool has_rows = size_found_ > 0 || !others_.empty();
  if (has_rows) read_records();
  SurveyOptions how;
  for (const Found& found : records_) {
    const std::uint64_t bytes = found.record.input.bytes;
    how.prefix = how.prefix == 0 ? bytes : std::min(how.prefix, bytes);
  }
  how.keep_ids = has_rows;
  how.flags = options_.flags;
  survey_ = survey_input(input_, how);
  if (!has_rows) return;
  for (const Found& found : records_) compare_input(found);
  compare_options(known, true);
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
    refuse_existing(path);
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

void JobFiles::open_others() {
  for (const std::filesystem::path& path : options_.others) {
    if (!is_taken(path)) continue;
    if (!options_.resume) refuse_existing(path);
    RowFile file(path);
    if (file.bytes() > 0) others_.push_back(std::move(file));
  }
}

void JobFiles::read_records() {
  const auto read = [&](const std::filesystem::path& output) {
    std::optional<JobRecord> record = read_record(output);
    if (record) records_.push_back({output, *record});
    return record;
  };
  if (size_found_ > 0) recorded_ = read(options_.output);
  for (const RowFile& other : others_) {
    if (read(other.path())) continue;
    notes_.push_back(
        fmt::format("warning: there is no {}, so whether input, model and options of its rows are "
                    "those of this job is not known",
                    record_path(other.path()).string()));
  }
}

void JobFiles::refuse(const Found& found, const std::string& what) {
  throw Error(
      ErrorCode::bad_input,
      fmt::format("{}: cannot be resumed: {}; rerun as before, choose another --output, or remove "
                  "{} if old and new rows may be mixed",
                  found.output.string(), what, record_path(found.output).string()));
}

// The input as it was, or one that only grew.
void JobFiles::compare_input(const Found& found) {
  const FileStamp& then = found.record.input;
  const ContentHash& now = survey_.content;
  const bool prefix_is_same = now.prefix() && hash_text(*now.prefix()) == then.hash;
  if (then == FileStamp{now.bytes(), hash_text(now.value())}) return;
  if (!prefix_is_same || !input_.line_ends_at(then.bytes)) {
    refuse(found,
           fmt::format("the input {} has changed (it was {} bytes with hash {}, now {} with {})",
                       options_.input.string(), then.bytes, then.hash, now.bytes(),
                       hash_text(now.value())));
  }
  const std::size_t more = survey_.lines - found.record.input_lines;
  const std::string note = fmt::format("the input has grown by {} {} since the job began", more,
                                       plural(more, "line", "lines"));
  if (notes_.empty() || notes_.back() != note) notes_.push_back(note);
}

void JobFiles::compare_options(const JobRecord& now, bool partial) const {
  for (const Found& found : records_) {
    const std::vector<Change> list =
        changes(found.record, now, {.partial = partial, .parts = found.output == options_.output});
    if (!list.empty()) refuse(found, describe(list));
  }
}

void JobFiles::scan() {
  if (size_found_ > 0) scan_own();
  finished_by_all_ = existing_.finished.rows;
  for (const RowFile& other : others_) {
    finished_by_all_ += existing_.finished.lines.add_all(
        scan_rows(other, survey_.ids, options_.flags).finished.lines);
  }
  const FinishedLines& own = existing_.finished;
  std::string note =
      fmt::format("resumed: {} of {} rows were there", finished_by_all_, survey_.lines);
  if (own.errors > 0) note += fmt::format(" ({} error rows)", own.errors);
  if (!others_.empty()) {
    note += fmt::format(
        ", {} of them in this output and the rest in {} beside it (lockstep merge "
        "joins them)",
        own.rows, others_.size());
  }
  notes_.insert(notes_.begin(), note);
}

void JobFiles::scan_own() {
  existing_ = scan_rows(RowFile(options_.output, file_.get()), survey_.ids, options_.flags);
  const FinishedLines& finished = existing_.finished;
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
  compare_options(record, false);
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

std::size_t JobFiles::left(LineClaims* claims) {
  if (claims == nullptr || !claims->is_fixed()) return survey_.lines - finished_by_all_;
  if (!left_) {
    left_ = 0;
    LineSource ours(input_, existing_.finished, claims);
    for (InputLine line; ours.next(line);) ++*left_;
  }
  return *left_;
}

LineSource JobFiles::lines(LineClaims* claims) {
  const bool is_known = claims == nullptr || claims->is_fixed();
  return LineSource(input_, existing_.finished, claims,
                    is_known ? std::optional(left(claims)) : std::nullopt);
}

std::string JobFiles::state() const {
  Fingerprint lines;
  // Zeros at the end say nothing.
  for (std::size_t i = 0; i < existing_.finished.lines.words().size(); ++i) {
    const std::uint64_t word[] = {i, existing_.finished.lines.words()[i]};
    if (word[1] != 0) lines.add(std::as_bytes(std::span(word)));
  }
  return fmt::format("{} {} {} {}", survey_.content.bytes(), hash_text(survey_.content.value()),
                     finished_by_all_, hash_text(lines.value()));
}

void JobFiles::finish(bool all_done) {
  if (is_stream()) return;
  const bool computed = rows_.has_value();
  if (!computed && file_.is_open()) {
    repair_tail(options_.output, file_.get(), existing_);
    rows_.emplace(options_.output, std::move(file_), existing_.bytes);
  } else if (!computed) {
    if (!others_.empty()) return;    // all rows are there
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
