// What a job would be: every line is parsed, rendered and counted as in the real job, nothing is
// answered and nothing is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/batch/input.h"
#include "runtime/batch/line_source.h"
#include "runtime/batch/request.h"
#include "runtime/batch/step_model.h"
#include "runtime/batch/stop_check.h"
#include "runtime/kv_blocks.h"

namespace lockstep::batch {

struct JobForecast {
  std::size_t requests = 0;                        // lines that would be answered
  std::size_t errors = 0;                          // lines that would give an error row
  std::map<std::string, std::size_t> error_codes;  // how many have which error.code
  std::vector<RequestError> first_errors;          // kShownErrors at most
  std::size_t truncated = 0;                       // requests whose prompt would be cut
  std::size_t doubled_bos = 0;                     // prompts that begin with two BOS tokens
  std::uint64_t prompt_tokens = 0;
  std::uint64_t shared_tokens = 0;  // of these, found in the cache instead of computed; about
  std::uint64_t answer_tokens = 0;  // at most
  std::size_t longest_prompt = 0;

  static constexpr std::size_t kShownErrors = 10;

  std::uint64_t computed_tokens() const noexcept { return prompt_tokens - shared_tokens; }
};

// Reads all lines that the source has. `cache`: the blocks of the real job; sharing is counted as
// if rows ran one after the other. `on_line` gets the number of lines so far, after each of them.
// Throws Error(io), and Error(interrupted) when told to stop.
JobForecast forecast_job(const StepModel& model, LineSource& lines, const InputSurvey& survey,
                         const RequestDefaults& defaults, const KvBlocks::Options& cache,
                         const StopFlags& flags, const std::function<void(std::size_t)>& on_line);

}  // namespace lockstep::batch
