// See dry_run.h.
#include "runtime/batch/dry_run.h"

#include <algorithm>
#include <utility>

#include "runtime/batch/prepare.h"
#include "runtime/batch/prompt.h"

namespace lockstep::batch {

namespace {

// Which part of a prompt the cache would have.
class SharingModel {
 public:
  explicit SharingModel(const KvBlocks::Options& options) : blocks_(one_slot(options)) {}

  std::size_t shared(std::span<const TokenId> prompt) {
    const std::size_t found = blocks_.adopt(0, prompt);
    if (blocks_.reserve(0, prompt.subspan(found))) blocks_.commit();
    blocks_.truncate(0, 0);
    blocks_.take_copies();
    return found;
  }

 private:
  static KvBlocks::Options one_slot(KvBlocks::Options options) {
    options.slots = 1;
    return options;
  }
  KvBlocks blocks_;
};

void add_error(JobForecast& forecast, RequestError error) {
  ++forecast.errors;
  ++forecast.error_codes[error.code];
  if (forecast.first_errors.size() < JobForecast::kShownErrors) {
    forecast.first_errors.push_back(std::move(error));
  }
}

void add_sequence(JobForecast& forecast, const Sequence& sequence, TokenId bos,
                  SharingModel& sharing) {
  ++forecast.requests;
  forecast.prompt_tokens += sequence.prompt.size();
  forecast.shared_tokens += sharing.shared(sequence.prompt);
  forecast.answer_tokens += sequence.max_tokens;
  forecast.longest_prompt = std::max(forecast.longest_prompt, sequence.prompt.size());
  if (sequence.truncated > 0) ++forecast.truncated;
  if (begins_with_two(sequence.prompt, bos)) ++forecast.doubled_bos;
}

// What the job would make of the line.
std::variant<Sequence, RequestError> sequence_of(ParsedLine parsed, const StepModel& model,
                                                 bool truncate_prompt) {
  if (auto* error = std::get_if<RequestError>(&parsed)) return std::move(*error);
  return prepare(model, std::get<Request>(parsed), truncate_prompt);
}

}  // namespace

JobForecast forecast_job(const StepModel& model, LineSource& lines, const InputSurvey& survey,
                         const RequestDefaults& defaults, const KvBlocks::Options& cache,
                         const StopFlags& flags, const std::function<void(std::size_t)>& on_line) {
  JobForecast forecast;
  SharingModel sharing(cache);
  InputLine line;
  while (lines.next(line)) {
    flags.check("while its input was counted");
    auto row = sequence_of(parse_line(line, lines.format(), defaults, survey.fallback), model,
                           defaults.truncate_prompt);
    if (auto* error = std::get_if<RequestError>(&row)) {
      add_error(forecast, std::move(*error));
    } else {
      add_sequence(forecast, std::get<Sequence>(row), model.bos(), sharing);
    }
    on_line(forecast.requests + forecast.errors);
  }
  return forecast;
}

}  // namespace lockstep::batch
