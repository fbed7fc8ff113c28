// Writing a job's rows: a new file only, append-only, one write() per row and nothing buffered in
// between, so that killing the process loses no finished row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace lockstep::batch {

class RowWriter {
 public:
  // Throws Error(cannot_create) if the file exists or cannot be made.
  explicit RowWriter(const std::filesystem::path& path);
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  ~RowWriter();

  // Appends one row, its newline included. If the disk is full or fails, cuts the file back to
  // whole rows and throws Error(io).
  void write(std::string_view row);
  // Makes the rows durable and closes the file. Throws Error(io).
  void close();

 private:
  [[noreturn]] void fail(const char* what, int error);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;  // of whole rows
};

}  // namespace lockstep::batch
