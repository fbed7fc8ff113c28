// Rows of one or several output files in the order of the input, in bounded memory: the index holds
// 8 bytes for each of some millions of lines at a time, and the files are read once more for the
// next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/batch/input.h"
#include "runtime/batch/row_file.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

struct Collation {
  std::size_t rows = 0;
  std::size_t errors = 0;                  // error rows among them
  std::size_t repeated = 0;                // left out: the same bytes as another row of their line
  std::size_t missing = 0;                 // lines without a row
  std::vector<std::size_t> first_missing;  // at most ten
  std::vector<std::size_t> torn;           // numbers of the files whose last row is not whole
};

struct CollateOptions {
  std::size_t last_line = 0;     // of the input
  const LineIds* ids = nullptr;  // check ids against these and count missing lines; null: trust
  std::size_t lines_at_once = std::size_t{1} << 22;
  StopFlags flags = {};
};

// Gives `put` every row, its newline included, in the order of the lines. Of rows that are the same
// bytes one is kept. Throws Error(bad_input) naming file and line for a row that is none of the
// input's, and for two different rows of one line; Error(io); Error(interrupted).
Collation collate(std::span<const RowFile> files, const CollateOptions& options,
                  const std::function<void(std::string_view)>& put);

}  // namespace lockstep::batch
