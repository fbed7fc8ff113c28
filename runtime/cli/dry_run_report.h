// What `lockstep batch --dry-run` tells: the counts of a job, and about how long it would take.
#pragma once

#include <string>

#include "lockstep/lockstep.h"
#include "runtime/batch/dry_run.h"
#include "runtime/bench/step_rates.h"

namespace lockstep::cli {

struct DryRun {
  batch::JobForecast job;
  bench::StepRates rates;
  SessionOptions session;
  std::uint64_t weight_bytes = 0, cache_bytes = 0;
  double load_seconds = 0;
};

// Without loading. At most, since answers may end before their last token; and about, since steps
// in which some sequences still compute their prompts are counted as the sum of their parts.
double forecast_seconds(const batch::JobForecast& job, const bench::StepRates& rates) noexcept;

// The positions that sequences have on the average while they answer; 1 at least.
std::size_t mean_depth(const batch::JobForecast& job) noexcept;
// Sequences that answer at once, as far as the slots and the cache allow; 1 at least.
std::size_t answering_together(const batch::JobForecast& job, std::size_t slots,
                               std::size_t cache_positions) noexcept;

// Lines for people, one JSON object for programs.
std::string dry_run_text(const DryRun& run);
std::string dry_run_json(const DryRun& run);

}  // namespace lockstep::cli
