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

// Lines of a job that ranks share as they go.
struct TakenLines {
  std::size_t now = 0;     // taken by all ranks
  std::size_t before = 0;  // when this rank began
  std::size_t lines = 0;   // in all
};
// "34 rows, all ranks have taken 70 of 100 lines, 3.10 rows/s, prompt 420, output 310 tok/s, ETA 7
// s": rows and rates of this rank; the ETA follows from what all have taken.
std::string shared_progress_text(const batch::JobStats& stats, double seconds,
                                 const TakenLines& taken);

// What the summary tells beside the job's own counts.
struct JobContext {
  std::string model;
  std::string input_format;
  unsigned rank = 0, ranks = 1;  // of the processes that share the job
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
