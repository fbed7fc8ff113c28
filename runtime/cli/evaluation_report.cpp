// See evaluation_report.h.
#include "runtime/cli/evaluation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/cli/units.h"

namespace lockstep::cli {

namespace {

using evaluate::Divergence;
using evaluate::Estimate;
using evaluate::Tails;
using nlohmann::ordered_json;

std::string line(const char* label, const Estimate& estimate, double unit = 1,
                 const char* suffix = "") {
  return fmt::format("{:<26}{:>12.6f} +/- {:.6f}{}\n", label, estimate.value * unit,
                     estimate.error * unit, suffix);
}

std::string line(const char* label, double value, double unit = 1, const char* suffix = "") {
  return fmt::format("{:<26}{:>12.6f}{}\n", label, value * unit, suffix);
}

std::string tail_lines(const Tails& tails, double unit, const char* suffix) {
  std::string text;
  for (const auto& [label, value] : {std::pair{"  maximum", tails.max},
                                     {"  99.9 %", tails.p99_9},
                                     {"  99 %", tails.p99},
                                     {"  95 %", tails.p95},
                                     {"  90 %", tails.p90},
                                     {"  median", tails.median},
                                     {"  10 %", tails.p10},
                                     {"  5 %", tails.p5},
                                     {"  1 %", tails.p1},
                                     {"  0.1 %", tails.p0_1},
                                     {"  minimum", tails.min}}) {
    text += line(label, value, unit, suffix);
  }
  return text;
}

ordered_json to_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

ordered_json to_json(const Tails& tails) {
  return {{"min", tails.min}, {"p0.1", tails.p0_1},   {"p1", tails.p1},   {"p5", tails.p5},
          {"p10", tails.p10}, {"p50", tails.median},  {"p90", tails.p90}, {"p95", tails.p95},
          {"p99", tails.p99}, {"p99.9", tails.p99_9}, {"max", tails.max}};
}

}  // namespace

std::string evaluation_table(const evaluate::Evaluation& result, const EvaluationContext& run) {
  std::string text = line("perplexity", result.statistics.perplexity());
  if (!run.base.empty()) {
    const Divergence divergence = result.statistics.divergence();
    constexpr double kPercent = 100;
    text += line("perplexity of the base", divergence.base_perplexity);
    text += line("ln(perplexity / base)", divergence.log_ratio);
    text += line("perplexity / base", divergence.ratio);
    text += line("perplexity - base", divergence.difference);
    text += line("correlation of ln p", divergence.log_correlation, kPercent, " %");
    text += line("KL divergence", divergence.kl);
    text += tail_lines(divergence.kl_tails, 1, "");
    text += line("change of p", divergence.p_difference, kPercent, " %");
    text += tail_lines(divergence.p_difference_tails, kPercent, " %");
    text += line("RMS change of p", divergence.p_difference_rms, kPercent, " %");
    text += line("same top token", divergence.same_top, kPercent, " %");
  }
  return text;
}

std::string evaluation_json(const evaluate::Evaluation& result, const EvaluationContext& run) {
  ordered_json json = {{"model", run.model},
                       {"text", run.text},
                       {"context", run.context},
                       {"chunks", run.chunks},
                       {"scored_tokens", result.statistics.count()},
                       {"kv_type", run.kv_type},
                       {"perplexity", to_json(result.statistics.perplexity())}};
  if (!run.base.empty()) {
    const Divergence divergence = result.statistics.divergence();
    json["base"] = run.base;
    json["base_perplexity"] = to_json(divergence.base_perplexity);
    json["log_ratio"] = to_json(divergence.log_ratio);
    json["ratio"] = to_json(divergence.ratio);
    json["difference"] = to_json(divergence.difference);
    json["log_correlation"] = divergence.log_correlation;
    json["kl"] = to_json(divergence.kl);
    json["kl_tails"] = to_json(divergence.kl_tails);
    json["p_difference"] = to_json(divergence.p_difference);
    json["p_difference_tails"] = to_json(divergence.p_difference_tails);
    json["p_difference_rms"] = to_json(divergence.p_difference_rms);
    json["same_top"] = to_json(divergence.same_top);
  }
  json["threads"] = run.threads;
  json["isa"] = run.isa;
  json["seconds"] = run.seconds;
  json["tokens_per_second"] = static_cast<double>(result.tokens) / run.seconds;
  json["logits_hash"] = fmt::format("{:016x}", result.logits_hash);
  // Names of files may be any bytes.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string evaluation_progress(std::size_t done, std::size_t total,
                                const evaluate::ScoreStatistics& so_far, bool has_base,
                                double seconds) {
  const Estimate perplexity = so_far.perplexity();
  std::string text = fmt::format("{}/{} chunks, perplexity {:.4f} +/- {:.4f}", done, total,
                                 perplexity.value, perplexity.error);
  if (has_base) text += fmt::format(", KL {:.6f}", so_far.means().kl.value);
  const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
  return text + fmt::format(", ETA {:.0f} s", left);
}

}  // namespace lockstep::cli
