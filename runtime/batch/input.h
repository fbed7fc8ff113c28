// Reading a job's input line by line, so that memory does not grow with the number of lines.
//
// The file is read twice (a check of all ids, then the job), so it must be a regular file. Both
// passes see the bytes that were there at opening: lines appended later are not part of the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/batch/request.h"

namespace lockstep::batch {

struct InputLine {
  std::size_t number = 0;    // 1-based, blank lines counted
  std::uint64_t offset = 0;  // of its first byte
  std::string text;          // without the line end; empty if too long
  bool too_long = false;     // longer than InputFile::kMaxLine
};

class InputFile {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{16} << 20;

  // Throws Error(no_input) if the file cannot be opened or is no regular file.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  // The next line that is not blank (a blank line holds nothing but spaces, tabs and a carriage
  // return). False at the end. Throws Error(io).
  bool next(InputLine& line);
  // Makes next() start at the line with this offset and number; (0, 1) is the beginning.
  void seek(std::uint64_t offset, std::size_t number);

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  bool fill();
  bool read_line(InputLine& line);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of the buffer
  std::uint64_t read_offset_ = 0;    // file offset behind the buffer
  std::size_t next_number_ = 1;
};

// What the first pass over all lines finds.
struct InputSurvey {
  std::size_t lines = 0;                  // rows that the job will write
  bool has_chat = false;                  // some line asks for a chat completion
  RowFormat fallback = RowFormat::plain;  // format of the first line whose format can be seen
};

// Reads all lines and rewinds. Throws Error(bad_input) naming both lines if an id occurs twice, or
// naming the line if an OpenAI request has no custom_id. Keeps 24 bytes per line that has an id.
InputSurvey survey_input(InputFile& input);

}  // namespace lockstep::batch
