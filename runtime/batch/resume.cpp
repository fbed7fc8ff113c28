// See resume.h.
#include "runtime/batch/resume.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "lockstep/error.h"
#include "runtime/fingerprint.h"
#include "runtime/printable.h"

namespace lockstep::batch {

namespace {

constexpr const char* kWhen = "before anything was computed";

[[noreturn]] void refuse(const RowFile& file, std::size_t row, const std::string& why) {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: line {} is no row of this job: {}; nothing was changed",
                          file.path().string(), row, why));
}

RowHead check_row(const RowFile& file, const Line& line, const LineIds& ids) {
  if (line.too_long) refuse(file, line.number, "it is longer than 1 GiB");
  ParsedRow parsed = parse_row(line.text);
  if (const auto* reason = std::get_if<std::string>(&parsed)) refuse(file, line.number, *reason);
  RowHead head = std::get<RowHead>(std::move(parsed));
  if (!ids.has_line(head.line)) {
    refuse(file, line.number, fmt::format("the input has no request on line {}", head.line));
  }
  if (!ids.matches(head.line, head.id)) {
    refuse(file, line.number,
           fmt::format("its id is {}, that of line {} of the input is another", printable(head.id),
                       head.line));
  }
  return head;
}

// Rows of these lines must be the same bytes. Reads the file again: rows that occur twice are rare.
void compare_repeated(const RowFile& file, const LineSet& repeated, const StopFlags& flags) {
  struct First {
    std::uint64_t hash;
    std::size_t row;
  };
  std::unordered_map<std::size_t, First> first;
  LineReader lines = file.lines();
  for (Line line; lines.next(line) && !file.is_torn(line);) {
    flags.check(kWhen);
    const std::size_t number = std::get<RowHead>(parse_row(line.text)).line;
    if (!repeated.contains(number)) continue;
    Fingerprint hash;
    hash.add(std::as_bytes(std::span(line.text)));
    const auto [it, is_new] = first.try_emplace(number, First{hash.value(), line.number});
    if (is_new || it->second.hash == hash.value()) continue;
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: lines {} and {} are different rows for line {} of the input; "
                            "nothing was changed",
                            file.path().string(), it->second.row, line.number, number));
  }
}

[[noreturn]] void fail_repair(const std::filesystem::path& path) {
  throw Error(ErrorCode::io, fmt::format("{}: cannot repair the last row: {}", path.string(),
                                         std::strerror(errno)));
}

}  // namespace

ExistingRows scan_rows(const RowFile& file, const LineIds& ids, const StopFlags& flags) {
  ExistingRows rows;
  rows.file_bytes = file.file_bytes();
  LineSet repeated;
  std::size_t last = 0;
  LineReader lines = file.lines();
  for (Line line; lines.next(line);) {
    flags.check(kWhen);
    if (file.is_torn(line)) break;
    const RowHead head = check_row(file, line, ids);
    rows.bytes = line.offset + line.text.size() + (line.ended ? 1 : 0);
    rows.lacks_newline = !line.ended;
    rows.in_order = rows.in_order && head.line > last;
    last = head.line;
    if (!rows.finished.lines.add(head.line)) {
      ++rows.repeated;
      repeated.add(head.line);
      continue;
    }
    ++rows.finished.rows;
    rows.finished.errors += head.is_error ? 1 : 0;
  }
  if (rows.repeated > 0) compare_repeated(file, repeated, flags);
  return rows;
}

void repair_tail(const std::filesystem::path& path, int descriptor, ExistingRows& rows) {
  if (rows.torn() > 0 && ::ftruncate(descriptor, static_cast<off_t>(rows.bytes)) != 0)
    fail_repair(path);
  rows.file_bytes = rows.bytes;
  if (!rows.lacks_newline) return;
  ssize_t written = 0;
  do {
    written = ::pwrite(descriptor, "\n", 1, static_cast<off_t>(rows.bytes));
  } while (written < 0 && errno == EINTR);
  if (written != 1) fail_repair(path);
  rows.lacks_newline = false;
  rows.file_bytes = ++rows.bytes;
}

}  // namespace lockstep::batch
