// See dry_run_report.h.
#include "runtime/cli/dry_run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/cli/console.h"
#include "runtime/cli/units.h"

namespace lockstep::cli {

namespace {

double seconds_for(std::uint64_t tokens, double tokens_per_s) {
  return tokens_per_s > 0 ? static_cast<double>(tokens) / tokens_per_s : 0;
}

std::string errors_text(const batch::JobForecast& job) {
  std::string text = fmt::format("error rows      {}\n", grouped(job.errors));
  for (const auto& [code, count] : job.error_codes) {
    text += fmt::format("  {:<27} {}\n", code, grouped(count));
  }
  for (const batch::RequestError& error : job.first_errors) {
    text += for_terminal(fmt::format("  line {}: {}", error.row.line, error.message)) + "\n";
  }
  if (job.errors > job.first_errors.size()) text += "  ...\n";
  return text;
}

std::string tokens_text(const batch::JobForecast& job) {
  std::string text = fmt::format(
      "prompt tokens   {} (longest prompt {}), about {} of them from the cache\n",
      grouped(job.prompt_tokens), grouped(job.longest_prompt), grouped(job.shared_tokens));
  if (job.truncated > 0) {
    text += fmt::format("cut prompts     {}\n", grouped(job.truncated));
  }
  if (job.doubled_bos > 0) {
    text += fmt::format("doubled BOS     {} prompts begin with two\n", grouped(job.doubled_bos));
  }
  return text + fmt::format("answer tokens   at most {}\n", grouped(job.answer_tokens));
}

std::string time_text(const DryRun& run) {
  const bench::StepRates& rates = run.rates;
  return fmt::format(
      "time            at most about {}, and {} to load: prompts at {} tok/s, answers at {} tok/s "
      "in {} slots, as measured just now\n",
      duration_text(forecast_seconds(run.job, rates)), duration_text(run.load_seconds),
      short_number(rates.prompt_tokens_per_s), short_number(rates.answer_tokens_per_s),
      rates.together);
}

}  // namespace

double forecast_seconds(const batch::JobForecast& job, const bench::StepRates& rates) noexcept {
  return seconds_for(job.computed_tokens(), rates.prompt_tokens_per_s) +
         seconds_for(job.answer_tokens, rates.answer_tokens_per_s);
}

std::size_t mean_depth(const batch::JobForecast& job) noexcept {
  if (job.requests == 0) return 1;
  const std::uint64_t sum = job.prompt_tokens + job.answer_tokens / 2;
  return std::max<std::size_t>(sum / job.requests, 1);
}

std::size_t answering_together(const batch::JobForecast& job, std::size_t slots,
                               std::size_t cache_positions) noexcept {
  if (job.requests == 0) return 1;
  // What sequences share is there once. It is not known which of them do: this is a mean.
  const std::uint64_t held = job.computed_tokens() + job.answer_tokens;
  const std::uint64_t each = std::max<std::uint64_t>(held / job.requests, 1);
  return std::max<std::size_t>(std::min({slots, job.requests, cache_positions / each}), 1);
}

std::string dry_run_text(const DryRun& run) {
  std::string text = fmt::format("requests        {}\n", grouped(run.job.requests));
  text += errors_text(run.job) + tokens_text(run.job);
  text += fmt::format("memory          weights {}, keys and values {} for {} slots of at most {}\n",
                      humane_bytes(run.weight_bytes), humane_bytes(run.cache_bytes),
                      run.session.slots, grouped(run.session.context));
  if (run.job.requests > 0) text += time_text(run);
  return text;
}

std::string dry_run_json(const DryRun& run) {
  const nlohmann::ordered_json json = {{"requests", run.job.requests},
                                       {"error_rows", run.job.errors},
                                       {"error_codes", run.job.error_codes},
                                       {"truncated_prompts", run.job.truncated},
                                       {"doubled_bos", run.job.doubled_bos},
                                       {"prompt_tokens", run.job.prompt_tokens},
                                       {"cached_tokens", run.job.shared_tokens},
                                       {"longest_prompt", run.job.longest_prompt},
                                       {"answer_tokens_at_most", run.job.answer_tokens},
                                       {"slots", run.session.slots},
                                       {"context", run.session.context},
                                       {"model_bytes", run.weight_bytes},
                                       {"cache_bytes", run.cache_bytes},
                                       {"load_seconds", run.load_seconds},
                                       {"prompt_tokens_per_second", run.rates.prompt_tokens_per_s},
                                       {"answer_tokens_per_second", run.rates.answer_tokens_per_s},
                                       {"answering_together", run.rates.together},
                                       {"seconds_at_most", forecast_seconds(run.job, run.rates)}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
