// What `lockstep quantize` says about its plan and its work: pure functions from counts and seconds
// to text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/quantize/file_plan.h"
#include "runtime/quantize/file_writer.h"

namespace lockstep::cli {

// One line per tensor, then totals by format.
std::string plan_text(const quantize::FilePlan& plan);

// The time of a finished run; zero seconds: a dry run.
struct QuantizeRun {
  std::string input, output;
  unsigned threads = 0;
  double seconds = 0;
};

nlohmann::ordered_json plan_json(const quantize::FilePlan& plan, const quantize::Request& request,
                                 const QuantizeRun& run);

// "Q4_K_M: 2.05 GiB (16.00 bits per weight) -> 637 MiB (4.85) in 12.3 s, ..."
std::string summary_text(const quantize::FilePlan& plan, const quantize::Request& request,
                         const QuantizeRun& run);

// "blk.0.attn_k.weight: rows of 96 values are no whole blocks of Q4_K (256): Q5_0 instead"
std::string fallback_text(const quantize::PlannedTensor& tensor);

// "[===>    ] blk.3.ffn_down.weight, 120 of 290 MiB, 310 MB/s, ETA 3 s"
std::string progress_text(const quantize::WriteProgress& progress, double seconds);

}  // namespace lockstep::cli
