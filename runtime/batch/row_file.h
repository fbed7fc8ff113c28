// Output files read back: whole rows, what each says about itself, and what a crash left at the
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/batch/file_lock.h"
#include "runtime/batch/line_reader.h"

namespace lockstep::batch {

// What ties a row to its input line.
struct RowHead {
  std::size_t line = 0;
  std::string id;  // JSON text, "null" if the line has none
  bool is_error = false;
};

// Or why the text is no row.
using ParsedRow = std::variant<RowHead, std::string>;
ParsedRow parse_row(std::string_view text);

class RowFile {
 public:
  static constexpr std::size_t kMaxRow = std::size_t{1} << 30;

  // Throws Error(no_input) if it cannot be opened or is no regular file.
  explicit RowFile(const std::filesystem::path& path);
  // An open file, which stays the caller's.
  RowFile(std::filesystem::path path, int descriptor);

  const std::filesystem::path& path() const noexcept { return path_; }
  // Without the zero bytes at the end that some file systems leave after a power failure.
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  LineReader lines() const { return {descriptor_, bytes_, kMaxRow, path_}; }
  // True if the line is the last one and not a whole row: its newline is missing and so is more, or
  // a power failure left zero bytes in it. JSON has none.
  bool is_torn(const Line& line) const;
  // The row that begins at this byte, with its newline.
  std::string row_at(std::uint64_t offset) const;
  bool is_locked_by_another() const;

 private:
  void measure();

  std::filesystem::path path_;
  Descriptor owned_;
  int descriptor_ = -1;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace lockstep::batch
