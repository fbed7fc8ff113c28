// Writing a job's rows: append-only, one write() per row and nothing buffered in between, so that
// killing the process loses no finished row. Into a file that is locked, or down a pipe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "runtime/batch/file_lock.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

class RowWriter {
 public:
  // A new file. Throws Error(cannot_create) if it exists or cannot be made.
  explicit RowWriter(const std::filesystem::path& path);
  // Goes on with an open file that holds `bytes` bytes of whole rows.
  RowWriter(std::filesystem::path path, Descriptor file, std::uint64_t bytes);
  // Standard output. A reader that takes its time is waited for, until `flags` say to drop the row.
  explicit RowWriter(const StopFlags& flags);
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  ~RowWriter();

  // Appends one row, its newline included. If the disk is full or fails, cuts the file back to
  // whole rows and throws Error(io); the same if a pipe's reader has gone. Throws
  // Error(interrupted) if a row is dropped on its way down a pipe.
  void write(std::string_view row);
  // Makes the rows durable and closes the file. Throws Error(io).
  void close();

 private:
  void write_stream(std::string_view row);
  [[noreturn]] void fail(const char* what, int error);

  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;  // of whole rows
  bool is_stream_ = false;
  StopFlags flags_ = {};
};

}  // namespace lockstep::batch
