// The result of `lockstep perplexity` as a table for people and as JSON for programs: pure
// functions.
#pragma once

#include <string>

#include "runtime/evaluate/perplexity.h"

namespace lockstep::cli {

struct EvaluationContext {
  std::string model, text, base;  // as given; base: "" without one
  std::string kv_type, isa;
  std::size_t context = 0, chunks = 0;
  unsigned threads = 0;
  double seconds = 0;
};

std::string evaluation_table(const evaluate::Evaluation& result, const EvaluationContext& run);
std::string evaluation_json(const evaluate::Evaluation& result, const EvaluationContext& run);

// One line for progress: "12/63 chunks, perplexity 2.5312 +/- 0.1511, KL 0.00038, ETA 7 s".
std::string evaluation_progress(std::size_t done, std::size_t total,
                                const evaluate::ScoreStatistics& so_far, bool has_base,
                                double seconds);

}  // namespace lockstep::cli
