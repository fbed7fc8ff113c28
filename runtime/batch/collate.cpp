// An index by line of where each row begins: file number above, byte offset below.
#include "runtime/batch/collate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lockstep/error.h"
#include "runtime/printable.h"

namespace lockstep::batch {

namespace {

constexpr const char* kWhen = "while rows were put in order; what was written before is untouched";
constexpr int kOffsetBits = 48;
constexpr std::uint64_t kNoRow = ~std::uint64_t{0};
constexpr std::size_t kMaxFiles = (std::size_t{1} << (64 - kOffsetBits)) - 1;
constexpr std::size_t kMissingShown = 10;

[[noreturn]] void refuse(const RowFile& file, std::size_t row, const std::string& why) {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: line {}: {}; nothing was written", file.path().string(), row, why));
}

class Collator {
 public:
  Collator(std::span<const RowFile> files, const CollateOptions& options)
      : files_(files), options_(options) {}

  // Rows of lines [first, first + count) into the index.
  void index(std::size_t first, std::size_t count) {
    first_ = first;
    starts_.assign(count, kNoRow);
    for (std::size_t i = 0; i < files_.size(); ++i) index_file(i);
  }

  void put_rows(const std::function<void(std::string_view)>& put) {
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      options_.flags.check(kWhen);
      if (starts_[i] != kNoRow) {
        put(row_at(starts_[i]));
        ++result_.rows;
      } else if (options_.ids && options_.ids->has_line(first_ + i)) {
        if (++result_.missing <= kMissingShown) result_.first_missing.push_back(first_ + i);
      }
    }
  }

  Collation take_result() { return std::move(result_); }

 private:
  std::string row_at(std::uint64_t start) const {
    const std::uint64_t offset = start & ((std::uint64_t{1} << kOffsetBits) - 1);
    return files_[start >> kOffsetBits].row_at(offset);
  }

  void index_file(std::size_t number) {
    const RowFile& file = files_[number];
    LineReader lines = file.lines();
    for (Line line; lines.next(line);) {
      options_.flags.check(kWhen);
      if (file.is_torn(line)) {
        if (first_ == 1) result_.torn.push_back(number);
        break;
      }
      const RowHead head = head_of(file, line);
      if (head.line < first_ || head.line - first_ >= starts_.size()) continue;
      std::uint64_t& start = starts_[head.line - first_];
      const std::uint64_t here = (std::uint64_t{number} << kOffsetBits) | line.offset;
      if (start == kNoRow) {
        start = here;
        result_.errors += head.is_error ? 1 : 0;
        continue;
      }
      if (row_at(start) != row_at(here)) {
        refuse(file, line.number,
               fmt::format("another row than the one in {} for line {} of the input",
                           files_[start >> kOffsetBits].path().string(), head.line));
      }
      ++result_.repeated;
    }
  }

  RowHead head_of(const RowFile& file, const Line& line) const {
    ParsedRow parsed = line.too_long ? "it is longer than 1 GiB" : parse_row(line.text);
    if (const auto* reason = std::get_if<std::string>(&parsed)) {
      refuse(file, line.number, "no row of a batch job: " + *reason);
    }
    RowHead head = std::get<RowHead>(std::move(parsed));
    if (head.line > options_.last_line || (options_.ids && !options_.ids->has_line(head.line))) {
      refuse(file, line.number, fmt::format("the input has no request on line {}", head.line));
    }
    if (options_.ids && !options_.ids->matches(head.line, head.id)) {
      refuse(file, line.number,
             fmt::format("its id is {}, that of line {} of the input is another",
                         printable(head.id), head.line));
    }
    return head;
  }

  std::span<const RowFile> files_;
  const CollateOptions& options_;
  std::size_t first_ = 0;
  std::vector<std::uint64_t> starts_;
  Collation result_;
};

}  // namespace

Collation collate(std::span<const RowFile> files, const CollateOptions& options,
                  const std::function<void(std::string_view)>& put) {
  if (files.size() > kMaxFiles) {
    throw Error(ErrorCode::usage, fmt::format("at most {} files can be merged", kMaxFiles));
  }
  Collator collator(files, options);
  std::size_t first = 1;
  do {
    const std::size_t left = options.last_line - std::min(options.last_line, first - 1);
    collator.index(first, std::min(left, options.lines_at_once));
    collator.put_rows(put);
    first += options.lines_at_once;
  } while (first <= options.last_line);
  return collator.take_result();
}

}  // namespace lockstep::batch
