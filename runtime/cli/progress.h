// Progress and summary of a batch job: pure functions from counts and seconds to text.
#pragma once

#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/batch/job.h"

namespace lockstep::cli {

// "[====>       ] 12/32 rows (4 resumed), 3.10 rows/s, prompt 420, output 310 tok/s, ETA 7 s",
// without the bar for a log. `seconds`: since the job began. Rates and ETA are of this run's rows.
std::string progress_text(const batch::JobStats& stats, double seconds, bool bar);

// What the summary tells beside the job's own counts.
struct JobContext {
  std::string model;
  std::string input_format;
  int exit_code = 0;
  double load_seconds = 0;  // until the first step could be made
  std::uint64_t load_bytes = 0;
  double read_seconds = 0;  // of these bytes
  double seconds = 0;       // reading, computing and writing; without loading
  unsigned threads = 0;     // 0: there was nothing to compute, and no model was loaded
  std::string openmp_runtime, wait_policy;
  WorkerTime worker_time;
  std::string isa;
  std::vector<std::string> kernels;
  std::vector<std::string> warnings;
  std::size_t slots = 0, context = 0;
  std::uint64_t model_bytes = 0, cache_bytes = 0, peak_bytes = 0;
  MemoryReport weights, cache;  // where they lie
};

// One line for people, one JSON object for programs.
std::string summary_text(const batch::JobStats& stats, const JobContext& job);
std::string summary_json(const batch::JobStats& stats, const JobContext& job);

}  // namespace lockstep::cli
