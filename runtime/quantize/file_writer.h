// Making the quantized file: every row is read, decoded, encoded and written by one worker of the
// team, a few hundred kilobytes at a time, so that memory does not grow with the model and reading,
// computing and writing overlap by themselves. A row's bytes depend on that row alone: any number
// of workers makes the same file.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/lockstep.h"
#include "runtime/quantize/file_plan.h"

namespace lockstep::quantize {

// Told by the calling thread now and then.
struct WriteProgress {
  std::string_view tensor;
  std::uint64_t done = 0;  // bytes read
  std::uint64_t total = 0;
};

struct WriteHooks {
  std::function<void(const WriteProgress&)> progress;  // may be empty
  const std::atomic<bool>* stop = nullptr;             // raised: Error(interrupted) soon
};

// Where an importance matrix came from, for the metadata.
struct ImportanceSource {
  const ImportanceMatrix* matrix = nullptr;  // null: none was used
  std::string file;
};

// Writes the file of the plan, which was made from `file`: its metadata in its order, with
// general.file_type and general.quantization_version set. The file appears under its name when it
// is complete; an error leaves nothing behind. Throws Error(usage) for a format that cannot be
// written, Error(bad_model) naming tensor and row for weights that are not finite or do not fit the
// format, Error(io), Error(cannot_create), Error(interrupted).
void write_file(const GgufFile& file, const FilePlan& plan, const Request& request,
                const ImportanceSource& importance, const Engine& engine,
                const std::filesystem::path& path, const WriteHooks& hooks);

}  // namespace lockstep::quantize
