// What a job that goes on finds in its output: which lines have their rows, and whether the last
// row is whole.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/batch/input.h"
#include "runtime/batch/line_source.h"
#include "runtime/batch/row_file.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

struct ExistingRows {
  FinishedLines finished;
  std::size_t repeated = 0;      // rows that occur once more, byte for byte
  bool in_order = true;          // by line
  std::uint64_t bytes = 0;       // of whole rows
  std::uint64_t file_bytes = 0;  // of the file; more if a torn row or zero bytes follow
  bool lacks_newline = false;    // the last row is whole but for its newline
  std::uint64_t torn() const noexcept { return file_bytes - bytes; }
};

// Reads all rows and changes nothing. Throws Error(bad_input) naming the output's line for a row
// that is none of this job (no row at all, a line that the input has not, another id) and for two
// different rows of one line.
ExistingRows scan_rows(const RowFile& file, const LineIds& ids, const StopFlags& flags);

// Cuts off what follows the whole rows and adds a missing newline. Throws Error(io).
void repair_tail(const std::filesystem::path& path, int descriptor, ExistingRows& rows);

}  // namespace lockstep::batch
