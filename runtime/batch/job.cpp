// See job.h.
#include "runtime/batch/job.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/batch/prepare.h"
#include "runtime/batch/prompt.h"
#include "runtime/batch/rows.h"
#include "runtime/utf8.h"

namespace lockstep::batch {

namespace {

class Job {
 public:
  Job(StepModel& model, LineSource& lines, const InputSurvey& survey, RowWriter& output,
      const RequestDefaults& defaults, JobObserver& observer)
      : model_(model),
        lines_(lines),
        fallback_(survey.fallback),
        output_(output),
        defaults_(defaults),
        observer_(observer),
        scheduler_(model),
        to_answer_(lines.count(survey.lines)) {
    stats_.total = lines.finished().rows + to_answer_.value_or(0);
    stats_.rows = stats_.resumed = lines.finished().rows;
    stats_.errors = lines.finished().errors;
  }

  JobStats run(const std::atomic<bool>& stop) {
    while (!stop.load()) {
      admit(stop);
      if (scheduler_.idle()) break;
      if (!step()) break;
    }
    stats_.active = 0;
    const bool took_all = to_answer_.has_value() || lines_.at_end();
    stats_.interrupted = stop.load() && (stats_.rows < stats_.total || !took_all);
    return stats_;
  }

 private:
  // Fills the free slots. Lines that cannot be used become error rows on the way.
  void admit(const std::atomic<bool>& stop) {
    while (scheduler_.wants_more() && !stop.load() && lines_.next(line_)) {
      if (!to_answer_) ++stats_.total;
      ParsedLine parsed = parse_line(line_, lines_.format(), defaults_, fallback_);
      if (auto* error = std::get_if<RequestError>(&parsed)) {
        write_error(std::move(*error));
      } else {
        start(std::move(std::get<Request>(parsed)));
      }
    }
    stats_.active = scheduler_.active();
  }

  void start(Request request) {
    auto prepared = prepare(model_, request, defaults_.truncate_prompt);
    if (auto* error = std::get_if<RequestError>(&prepared)) return write_error(std::move(*error));
    auto& sequence = std::get<Sequence>(prepared);
    if (begins_with_two(sequence.prompt, model_.bos())) ++stats_.doubled_bos;
    rows_.emplace(scheduler_.add(std::move(sequence)), std::move(request.row));
  }

  bool step() {
    finished_.clear();
    StepCounts counts;
    const auto start = std::chrono::steady_clock::now();
    if (!scheduler_.step(finished_, counts)) return false;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    step_time(counts) += seconds.count();
    ++stats_.steps;
    stats_.prompt_tokens += counts.prompt_tokens;
    stats_.cached_tokens += counts.cached_tokens;
    stats_.recomputed_tokens += counts.recomputed_tokens;
    stats_.preemptions += counts.preemptions;
    stats_.output_tokens += counts.output_tokens;
    stats_.weight_bytes += model_.step_weight_bytes();
    for (Finished& answer : finished_) write_answer(std::move(answer));
    lines_.progress();
    observer_.on_step(stats_);
    return true;
  }

  double& step_time(const StepCounts& counts) {
    if (counts.answering == 0) return stats_.prompt_seconds;
    const bool alone = counts.prompt_tokens + counts.recomputed_tokens == 0;
    return alone ? stats_.answer_seconds : stats_.mixed_seconds;
  }

  void write_answer(Finished answer) {
    const RowIdentity row = std::move(rows_.extract(answer.id).mapped());
    if (answer.reason == FinishReason::non_finite) {
      ++stats_.non_finite;
      return write_error(
          {row, 500, "non_finite_logits",
           fmt::format("the model gave NaN or infinite logits after {} generated tokens",
                       answer.output_tokens)});
    }
    answer.text = sanitize_utf8(answer.text);
    output_.write(answer_row(row, answer, model_));
    ++stats_.rows;
    observer_.on_answer(row, answer);
  }

  void write_error(RequestError error) {
    error.message = sanitize_utf8(error.message);
    output_.write(error_row(error));
    ++stats_.rows;
    ++stats_.errors;
    observer_.on_error(error, stats_);
  }

  StepModel& model_;
  LineSource& lines_;
  RowFormat fallback_;
  RowWriter& output_;
  const RequestDefaults& defaults_;
  JobObserver& observer_;
  Scheduler scheduler_;
  std::map<std::uint64_t, RowIdentity> rows_;  // of the sequences that run or wait
  std::optional<std::size_t> to_answer_;
  std::vector<Finished> finished_;
  InputLine line_;
  JobStats stats_;
};

}  // namespace

JobStats run_job(StepModel& model, LineSource& lines, const InputSurvey& survey, RowWriter& output,
                 const RequestDefaults& defaults, const std::atomic<bool>& stop,
                 JobObserver& observer) {
  return Job(model, lines, survey, output, defaults, observer).run(stop);
}

}  // namespace lockstep::batch
