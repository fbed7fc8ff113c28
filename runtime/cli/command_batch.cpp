// `lockstep batch`: from options to a running job, with its progress on stderr. The job itself is
// runtime/batch/.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "lockstep/lockstep.h"
#include "runtime/batch/job.h"
#include "runtime/batch/job_files.h"
#include "runtime/batch/prompt.h"
#include "runtime/batch/replacement.h"
#include "runtime/batch/session_model.h"
#include "runtime/chat/chat_template.h"
#include "runtime/cli/batch_progress.h"
#include "runtime/cli/batch_record.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/memory_options.h"
#include "runtime/cli/memory_report.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/starvation.h"
#include "runtime/cli/stop_signals.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/cli/units.h"
#include "topology/budget.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter =
    R"(Input, one request per line; blank lines are skipped, formats may be mixed:
  {"id": "a", "prompt": "Once upon a time", "max_tokens": 40}
  {"id": "b", "messages": [{"role": "user", "content": "Tell me a story."}]}
  {"custom_id": "c", "method": "POST", "url": "/v1/chat/completions",
   "body": {"messages": [...]}}      (on one line)
  {"custom_id": "d", "method": "POST", "url": "/v1/completions",
   "body": {"prompt": "..."}}        (on one line)
A line (or its body) may set max_tokens (or max_completion_tokens), min_tokens, temperature, top_k,
top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, logit_bias, seed, stop,
include_stop_str_in_output, ignore_eos, logprobs, top_logprobs, return_token_ids and
truncate_prompt_tokens. A prompt may be an array of token ids. In a file that is named *.txt, or
with --input-format text, each line is a prompt.

Output: one row per request in the order of completion, with the line number; a request that
cannot be answered becomes an error row. Rows are the same bytes in every run.

A job that was stopped or killed goes on with --resume: finished rows are kept as they are. What
the rows were made from is recorded in OUTPUT.job, and a changed input, model or option is refused.

Examples:
  lockstep batch --input requests.jsonl --output answers.jsonl
  lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --slots 16 --max-tokens 256 --resume
  lockstep batch -i prompts.txt -o - | jq -r .text
)";

struct Batch {
  std::string model, input, output, summary;
  std::string input_format = "auto";
  EngineArguments engine;
  SessionArguments session;
  JobSizeArguments size;
  SamplingArguments sampling;
  ProfileArguments profile;
  double interval = 10;
  double grace = 10;
  bool show = false, resume = false, sorted = false;
  bool token_ids = false, truncate_prompt = false;

  int run() const;
  void check() const;
  batch::InputFormat format() const;
  batch::JobFilesOptions files(const StopSignals& signals) const;
  batch::JobStats compute(batch::JobFiles& files, batch::JobRecord record,
                          const StopSignals& signals, JobContext& context) const;
  int finish(batch::JobFiles& files, const batch::JobStats& stats, JobContext& context) const;
};

// A model whose template is unknown would turn every chat line into an error row: refused before
// any work.
void require_chat_template(const Model& model) {
  const ChatMessage probe{"user", "x"};
  batch::chat_tokens(model.tokenizer(), model.info().chat_template, {&probe, 1});
}

std::string team_text(const Engine& engine) {
  const topology::ThreadBudget& budget = engine.budget();
  if (engine.threads() == budget.threads) return budget.reason;
  return fmt::format("{} {} (budget: {})", engine.threads(),
                     engine.threads() == 1 ? "thread" : "threads", budget.reason);
}

std::string model_text(const Model& model) {
  const ModelInfo& info = model.info();
  return fmt::format("model {} ({}, {:.1f} M parameters, {:.1f} MB of weights, read {}); {}",
                     info.name.empty() ? "without a name" : for_terminal(info.name),
                     info.architecture, static_cast<double>(info.parameters) / 1e6,
                     static_cast<double>(info.weight_bytes) / 1e6,
                     humane_rate(info.load_bytes, info.load_seconds), team_text(model.engine()));
}

// What the summary tells of the machine and the model.
JobContext job_context(const Model& model, const Session& session) {
  const ModelInfo& info = model.info();
  const Engine& engine = model.engine();
  JobContext context;
  context.model = info.name;
  context.threads = engine.threads();
  context.openmp_runtime = engine.openmp_runtime();
  context.wait_policy = engine.wait_policy();
  context.worker_time = engine.worker_time();
  context.isa = engine.isa();
  context.kernels = info.kernels;
  context.warnings = engine.warnings();
  context.slots = session.options().slots;
  context.context = session.options().context;
  context.model_bytes = info.weight_bytes;
  context.cache_bytes = session.cache_bytes();
  context.load_bytes = info.load_bytes;
  context.read_seconds = info.load_seconds;
  context.weights = model.memory();
  context.cache = session.cache_memory();
  return context;
}

void Batch::check() const {
  sampling.check();
  profile.check();
  if (output == "-" && (resume || sorted)) {
    throw Error(ErrorCode::usage, "--resume and --sorted need an --output that is a file");
  }
  if (summary.empty()) return;
  if (summary == output) throw Error(ErrorCode::usage, "--summary and --output name the same file");
  // A job script that resumes writes the summary again.
  require_output(summary, resume);
}

batch::InputFormat Batch::format() const { return batch::format_named(input_format, input); }

batch::JobFilesOptions Batch::files(const StopSignals& signals) const {
  batch::JobFilesOptions options;
  options.input = input;
  options.output = output;
  options.format = format();
  options.resume = resume;
  options.sorted = sorted;
  options.flags = {&signals.stop(), &signals.drop()};
  return options;
}

batch::JobStats Batch::compute(batch::JobFiles& files, batch::JobRecord record,
                               const StopSignals& signals, JobContext& context) const {
  const Stopwatch load_watch;
  const Engine team = engine.create();
  SessionOptions options;
  const auto fit = [&](const Model& known) {
    if (files.survey().has_chat) require_chat_template(known);
    options = size.fit(session, known);
  };
  const Model loaded = load_model(team, model_path(model), &signals.stop(), fit);
  profile.apply(options);
  Session state(loaded, options);
  const double load_seconds = load_watch.seconds();
  show_note(model_text(loaded));

  batch::RequestDefaults defaults;
  defaults.max_tokens = sampling.max_tokens;
  defaults.sampling = sampling.params;
  defaults.token_ids = token_ids;
  defaults.truncate_prompt = truncate_prompt;
  defaults.vocabulary = loaded.info().vocabulary;
  batch::SessionModel steps(state);
  complete_record(record, loaded, state);
  const CancelOnDrop guard(state.cancel_flag());
  batch::RowWriter& rows = files.begin(record);
  batch::LineSource lines = files.lines();
  BatchProgress progress(interval, show);
  const batch::JobStats stats =
      batch::run_job(steps, lines, files.survey(), rows, defaults, signals.stop(), progress);

  const double seconds = progress.seconds();
  context = job_context(loaded, state);
  context.load_seconds = load_seconds;
  context.seconds = seconds;
  profile.report(state);
  note_starvation(team);
  return stats;
}

int Batch::finish(batch::JobFiles& files, const batch::JobStats& stats, JobContext& context) const {
  files.finish(!stats.interrupted);
  context.exit_code = stats.interrupted   ? static_cast<int>(ErrorCode::interrupted)
                      : stats.errors == 0 ? 0
                                          : kExitSomeErrorRows;
  context.peak_bytes = peak_memory();
  show_note(summary_text(stats, context));
  if (!summary.empty()) {
    batch::Replacement file(summary);
    file.write(summary_json(stats, context));
    file.commit();
  }
  if (stats.interrupted) {
    throw Error(ErrorCode::interrupted,
                fmt::format("stopped by a signal: {} of {} rows are in {}{}", stats.rows,
                            stats.total, output == "-" ? "standard output" : output,
                            output == "-" ? "" : "; --resume goes on"));
  }
  return context.exit_code;
}

int Batch::run() const {
  check();
  const StopSignals signals(grace);
  batch::JobRecord record = known_record(model_path(model), format(), sampling, session);
  record.set("token_ids", token_ids);
  record.set("truncate_prompt", truncate_prompt);
  batch::JobFiles job(files(signals), record);
  for (const std::string& note : job.notes()) show_note(note);
  JobContext context;
  batch::JobStats stats;
  if (job.complete()) {
    stats.total = job.survey().lines;
    stats.rows = stats.resumed = job.finished().rows;
    stats.errors = job.finished().errors;
  } else {
    stats = compute(job, record, signals, context);
  }
  context.input_format = name_of(format());
  return finish(job, stats, context);
}

}  // namespace

Command add_batch(CLI::App& root) {
  const auto self = std::make_shared<Batch>();
  CLI::App* app = root.add_subcommand("batch", "Answer a file of requests, one row for each");
  add_model_option(*app, self->model);
  app->add_option("-i,--input", self->input, "Requests (a regular file: it is read twice)")
      ->type_name("FILE")
      ->required();
  app->add_option("--input-format", self->input_format,
                  "jsonl, or text: each line is a prompt; auto (default): text for *.txt")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "jsonl", "text"}));
  app->add_option("-o,--output", self->output,
                  "Answers, JSONL; must not exist unless --resume; - for standard output")
      ->type_name("FILE")
      ->required();
  app->add_flag("--resume", self->resume,
                "Go on with an output that exists; start from the beginning if there is none");
  app->add_flag("--sorted", self->sorted,
                "Put the rows in the order of the input when all are there");
  self->sampling.add_to(*app);
  self->sampling.add_logprobs_to(*app);
  app->add_flag("--token-ids", self->token_ids,
                "Write the token ids of prompt and answer to every row");
  app->add_flag("--truncate-prompt", self->truncate_prompt,
                "Cut the front of prompts that leave no room for max_tokens, and say\n"
                "so in the row (default: such a prompt is an error row if it fills\n"
                "the context, else its answer is shorter)");
  self->session.add_to(*app);
  self->size.add_to(*app);
  self->engine.add_to(*app);
  app->add_flag("--show", self->show, "Show each finished answer on stderr");
  app->add_option("--interval", self->interval,
                  "Between progress lines where stderr is no terminal (default 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  app->add_option("--grace", self->grace,
                  "After a signal the current step is finished if it takes no longer\n"
                  "than this (default 10), else dropped")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  app->add_option("--summary", self->summary,
                  "Write a summary as JSON to this file; must not exist unless --resume")
      ->type_name("FILE");
  self->profile.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
