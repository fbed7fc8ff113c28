// Reading a file line by line in bounded memory, over pread so that several passes share one
// descriptor. It sees the bytes that were there when it was made, and no others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/batch/content_hash.h"

namespace lockstep::batch {

struct Line {
  std::size_t number = 0;    // 1-based, blank lines counted
  std::uint64_t offset = 0;  // of its first byte
  std::string text;          // without the line end; empty if too long
  bool too_long = false;     // longer than the reader's limit
  bool ended = false;        // by a newline: false for a last line without one
};

class LineReader {
 public:
  // Bytes [0, size) of the open file `descriptor`, which stays the caller's; `path` is its name in
  // messages. Lines longer than `max_line` bytes come without their text.
  LineReader(int descriptor, std::uint64_t size, std::size_t max_line, std::filesystem::path path);

  // False at the end. Throws Error(io).
  bool next(Line& line);
  // Makes next() start at the line with this offset and number; (0, 1) is the beginning.
  void seek(std::uint64_t offset, std::size_t number);
  // From now on what is read goes into `hash` too, which must outlive the reader; null: no longer.
  void hash_into(ContentHash* hash) noexcept { hash_ = hash; }

 private:
  bool fill();

  int descriptor_;
  std::uint64_t size_;
  std::size_t max_line_;
  std::filesystem::path path_;
  ContentHash* hash_ = nullptr;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes of the buffer
  std::uint64_t read_offset_ = 0;    // file offset behind the buffer
  std::size_t next_number_ = 1;
};

}  // namespace lockstep::batch
