// See progress.h. Rates are over the whole job so far: prompt and output tokens share their steps,
// so neither has a time of its own.
#include "runtime/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/cli/memory_report.h"
#include "runtime/cli/units.h"

namespace lockstep::cli {

namespace {

constexpr std::size_t kBarWidth = 12;

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

std::string draw_bar(std::size_t done, std::size_t total) {
  const std::size_t filled = total == 0 ? kBarWidth : done * kBarWidth / total;
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  return "[" + bar + "] ";
}

double gigabytes_per_second(const batch::JobStats& stats) {
  return rate(static_cast<double>(stats.weight_bytes) / 1e9, stats.step_seconds());
}

// Rows that this run wrote.
double own_rows(const batch::JobStats& stats) {
  return static_cast<double>(stats.rows - stats.resumed);
}

// " (4 resumed, 3 errors)", or what of it there is.
std::string remarks(const batch::JobStats& stats) {
  std::vector<std::string> parts;
  if (stats.resumed > 0) parts.push_back(fmt::format("{} resumed", stats.resumed));
  if (stats.errors > 0) parts.push_back(fmt::format("{} errors", stats.errors));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

std::string seconds_text(double seconds) { return fmt::format("{} s", short_number(seconds)); }

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

std::string progress_text(const batch::JobStats& stats, double seconds, bool bar) {
  const double rows = own_rows(stats);
  const double left = static_cast<double>(stats.total - std::min(stats.rows, stats.total));
  const std::string eta = rows == 0 ? "?" : duration_text(seconds * left / rows);
  return fmt::format("{}{}/{} rows{}, {} rows/s, prompt {}, output {} tok/s, ETA {}",
                     bar ? draw_bar(stats.rows, stats.total) : "", stats.rows, stats.total,
                     remarks(stats), short_number(rate(rows, seconds)),
                     short_number(rate(static_cast<double>(stats.prompt_tokens), seconds)),
                     short_number(rate(static_cast<double>(stats.output_tokens), seconds)), eta);
}

std::string shared_progress_text(const batch::JobStats& stats, double seconds,
                                 const TakenLines& taken) {
  const auto done = static_cast<double>(taken.now - std::min(taken.before, taken.now));
  const auto left = static_cast<double>(taken.lines - std::min(taken.now, taken.lines));
  const std::string eta = done == 0 ? "?" : duration_text(seconds * left / done);
  return fmt::format(
      "{} rows{}, all ranks have taken {} of {} lines, {} rows/s, prompt {}, output {} tok/s, ETA "
      "{}",
      stats.rows, remarks(stats), taken.now, taken.lines,
      short_number(rate(own_rows(stats), seconds)),
      short_number(rate(static_cast<double>(stats.prompt_tokens), seconds)),
      short_number(rate(static_cast<double>(stats.output_tokens), seconds)), eta);
}

std::string summary_text(const batch::JobStats& stats, const JobContext& job) {
  if (job.threads == 0) {
    return fmt::format("{} of {} rows ({} error rows): nothing was left to compute", stats.rows,
                       stats.total, stats.errors);
  }
  return fmt::format(
      "{} of {} rows ({}{} error rows) in {:.2f} s, after {:.2f} s of loading; {} prompt tokens "
      "and "
      "{} from the cache, {} output tokens, {} and {} tok/s; prompts {}, answers {}, both together "
      "{}; weights read at {} GB/s, {} MB a token from other NUMA nodes; {} {}, {} that {}, "
      "kernels {}",
      stats.rows, stats.total, stats.resumed == 0 ? "" : fmt::format("{} resumed, ", stats.resumed),
      stats.errors, job.seconds, job.load_seconds, stats.prompt_tokens, stats.cached_tokens,
      stats.output_tokens,
      short_number(rate(static_cast<double>(stats.prompt_tokens), job.seconds)),
      short_number(rate(static_cast<double>(stats.output_tokens), job.seconds)),
      seconds_text(stats.prompt_seconds), seconds_text(stats.answer_seconds),
      seconds_text(stats.mixed_seconds), short_number(gigabytes_per_second(stats)),
      short_number(static_cast<double>(job.weights.remote()) / 1e6), job.threads,
      job.threads == 1 ? "thread" : "threads", job.openmp_runtime, job.wait_policy,
      joined(job.kernels));
}

std::string summary_json(const batch::JobStats& stats, const JobContext& job) {
  const nlohmann::ordered_json summary = {
      {"model", job.model},
      {"rows", stats.rows},
      {"rows_in_input", stats.total},
      {"resumed_rows", stats.resumed},
      {"error_rows", stats.errors},
      {"non_finite_rows", stats.non_finite},
      {"doubled_bos", stats.doubled_bos},
      {"interrupted", stats.interrupted},
      {"exit_code", job.exit_code},
      {"rank", job.rank},
      {"ranks", job.ranks},
      {"input_format", job.input_format},
      {"prompt_tokens", stats.prompt_tokens},
      {"cached_tokens", stats.cached_tokens},
      {"recomputed_tokens", stats.recomputed_tokens},
      {"preemptions", stats.preemptions},
      {"output_tokens", stats.output_tokens},
      {"steps", stats.steps},
      {"load_seconds", job.load_seconds},
      {"load_bytes_per_second", rate(static_cast<double>(job.load_bytes), job.read_seconds)},
      {"seconds", job.seconds},
      {"step_seconds", stats.step_seconds()},
      {"prompt_step_seconds", stats.prompt_seconds},
      {"answer_step_seconds", stats.answer_seconds},
      {"mixed_step_seconds", stats.mixed_seconds},
      {"prompt_tokens_per_second", rate(static_cast<double>(stats.prompt_tokens), job.seconds)},
      {"output_tokens_per_second", rate(static_cast<double>(stats.output_tokens), job.seconds)},
      {"weight_bytes_read", stats.weight_bytes},
      {"weight_gigabytes_per_second", gigabytes_per_second(stats)},
      {"threads", job.threads},
      {"openmp_runtime", job.openmp_runtime},
      {"wait_policy", job.wait_policy},
      {"worker_seconds_running", job.worker_time.running},
      {"worker_seconds_starved", job.worker_time.starved},
      {"isa", job.isa},
      {"kernels", job.kernels},
      {"slots", job.slots},
      {"context", job.context},
      {"model_bytes", job.model_bytes},
      {"cache_bytes", job.cache_bytes},
      {"peak_memory_bytes", job.peak_bytes},
      {"remote_bytes_per_token", job.weights.remote()},
      {"weight_memory", memory_json(job.weights)},
      {"cache_memory", memory_json(job.cache)},
      {"warnings", job.warnings}};
  return summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
