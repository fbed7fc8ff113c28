// Joining the outputs of several runs over one input (shards, ranks, a job and its repeats): every
// line of the input must have exactly one row, whichever file it is in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/batch/collate.h"
#include "runtime/batch/input.h"
#include "runtime/batch/stop_check.h"

namespace lockstep::batch {

struct MergeOptions {
  std::filesystem::path input;
  InputFormat format = InputFormat::jsonl;
  std::filesystem::path output;
  std::vector<std::filesystem::path> parts;
  bool partial = false;  // write what there is, though lines are missing
  StopFlags flags = {};
};

struct Merged {
  Collation rows;
  std::size_t lines = 0;           // of the input
  std::vector<std::string> notes;  // one line each
};

// Writes the rows in the order of the input, and a record of what they are made from if the parts
// have records. Replaces an older output, and only when all is well. Throws Error: no_input;
// bad_input for parts made from different models, options or inputs, for rows that do not belong
// together, and (without `partial`) for lines without a row; usage if the output is one of the
// parts; cannot_create; io; interrupted.
Merged merge_outputs(const MergeOptions& options);

}  // namespace lockstep::batch
