// Reading a job's input line by line, so that memory does not grow with the number of lines.
//
// The file is read twice (a check of all ids, then the job), so it must be a regular file. Both
// passes see the bytes that were there at opening: lines appended later are not part of the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/batch/content_hash.h"
#include "runtime/batch/file_lock.h"
#include "runtime/batch/line_reader.h"
#include "runtime/batch/request.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

using InputLine = Line;

enum class InputFormat : std::uint8_t {
  jsonl,  // a request in JSON on each line
  text,   // each line is a prompt
};

// "jsonl", "text".
std::string_view name_of(InputFormat format) noexcept;
// "jsonl", "text", or "auto": text for a file that is named *.txt, jsonl for every other.
InputFormat format_named(std::string_view name, const std::filesystem::path& path);

class InputFile {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{16} << 20;

  // Throws Error(no_input) if the file cannot be opened or is no regular file.
  explicit InputFile(const std::filesystem::path& path, InputFormat format = InputFormat::jsonl);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // The next line that is not blank (a blank line holds nothing but spaces, tabs and a carriage
  // return). False at the end. Throws Error(io).
  bool next(InputLine& line);
  // Makes next() start at the line with this offset and number; (0, 1) is the beginning.
  void seek(std::uint64_t offset, std::size_t number) { reader_->seek(offset, number); }
  // What is read from now on goes into `hash` too; null: no longer.
  void hash_into(ContentHash* hash) noexcept { reader_->hash_into(hash); }
  // True if a line that began in the first `bytes` ends there: what follows begins a new one.
  bool line_ends_at(std::uint64_t bytes) const;

  const std::filesystem::path& path() const noexcept { return path_; }
  InputFormat format() const noexcept { return format_; }

 private:
  std::filesystem::path path_;
  InputFormat format_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::optional<LineReader> reader_;
};

// A line as a request, and what the check of ids needs of it, in the file's format. A line that
// cannot be used becomes a RequestError; see parse_request.
ParsedLine parse_line(const InputLine& line, InputFormat format, const RequestDefaults& defaults,
                      RowFormat fallback);
LineIdentity identify_line(const InputLine& line, InputFormat format);

// The ids of the lines as 8-byte hashes, for rows to be checked against.
class LineIds {
 public:
  // Lines in increasing order. `id`: JSON text, empty if the line has none.
  void add(std::size_t line, std::string_view id);
  // Is there such a line that is not blank; is this its id ("null" for none)?
  bool has_line(std::size_t line) const noexcept { return line < hashes_.size() && hashes_[line]; }
  bool matches(std::size_t line, std::string_view id) const noexcept;
  std::size_t last_line() const noexcept { return hashes_.empty() ? 0 : hashes_.size() - 1; }

  static std::uint64_t hash(std::string_view id) noexcept;

 private:
  std::vector<std::uint64_t> hashes_;  // by line number; 0: blank
};

// What the first pass over all lines finds.
struct InputSurvey {
  std::size_t lines = 0;                  // that are not blank: rows that the job will write
  std::size_t last_line = 0;              // number of the last of them
  bool has_chat = false;                  // some line asks for a chat completion
  RowFormat fallback = RowFormat::plain;  // format of the first line whose format can be seen
  ContentHash content;                    // of all bytes, and of the prefix that was asked for
  LineIds ids;                            // empty unless asked for
};

struct SurveyOptions {
  std::uint64_t prefix = 0;  // ContentHash: bytes that get a hash of their own
  bool keep_ids = false;
  StopFlags flags = {};
};

// Reads all lines and rewinds. Throws Error(bad_input) naming both lines if an id occurs twice, or
// naming the line if an OpenAI request has no custom_id. Takes 8 bytes per line that has an id, and
// 8 bytes per line for those that are kept.
InputSurvey survey_input(InputFile& input, const SurveyOptions& options = {});

}  // namespace lockstep::batch
