// `lockstep batch`: from options to a running job, with its progress on stderr. The job itself is
// runtime/batch/.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "lockstep/lockstep.h"
#include "runtime/batch/job.h"
#include "runtime/batch/prompt.h"
#include "runtime/batch/session_model.h"
#include "runtime/chat/chat_template.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
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
A line (or its body) may set max_tokens, max_completion_tokens, temperature, top_k, top_p, min_p,
seed and stop; a chat also tools and chat_template_kwargs.

Output: one row per request in the order of completion, with the line number; a request that
cannot be answered becomes an error row. The output must not exist. Rows are the same bytes in
every run.

Examples:
  lockstep batch --input requests.jsonl --output answers.jsonl
  lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --slots 16 --max-tokens 256 --show
)";

struct Batch {
  std::string model, input, output, summary;
  EngineArguments engine;
  SessionArguments session;
  SamplingArguments sampling;
  ChatArguments chat;
  ProfileArguments profile;
  std::size_t slots = 8;
  double interval = 10;
  bool show = false;

  int run() const;
};

// Shows a bar on a terminal, else one line per interval; with `show` every finished row.
class Progress final : public batch::JobObserver {
 public:
  Progress(double interval, bool show)
      : interval_(stderr_is_terminal() ? 0.1 : interval), show_(show) {}

  void on_answer(const batch::RowIdentity& row, const batch::Finished& answer) override {
    if (show_) show_row(row, answer.text);
  }

  void on_error(const batch::RequestError& error) override {
    if (show_) show_row(error.row, fmt::format("error: {}", error.message));
  }

  void on_step(const batch::JobStats& stats) override {
    const double now = watch_.seconds();
    const bool redraw = show_ && stderr_is_terminal() && stats.rows != shown_rows_;
    if (!redraw && now - last_ < interval_) return;
    last_ = now;
    shown_rows_ = stats.rows;
    if (stderr_is_terminal()) {
      show_status(progress_text(stats, now, true));
    } else {
      show_note(progress_text(stats, now, false));
    }
  }

  double seconds() const { return watch_.seconds(); }

 private:
  static void show_row(const batch::RowIdentity& row, const std::string& text) {
    const std::string id = row.id == "null" ? "" : fmt::format(", id {}", row.id);
    show_text(for_terminal(fmt::format("--- line {}{}\n{}", row.line, id, text)));
  }

  double interval_;
  bool show_;
  Stopwatch watch_;
  double last_ = 0;
  std::size_t shown_rows_ = 0;
};

// The template for the job's chats. One that cannot be used at all would turn every chat line into
// an error row: refused before any work. That it refuses one message alone is no proof of that.
ChatTemplate usable_template(const ChatArguments& arguments, const Model& model) {
  ChatTemplate chat = arguments.load(model.tokenizer(), model.info().chat_template);
  try {
    chat.render(simple_chat("x"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
  }
  return chat;
}

std::string team_text(const Engine& engine) {
  const topology::ThreadBudget& budget = engine.budget();
  if (engine.threads() == budget.threads) return budget.reason;
  return fmt::format("{} {} (budget: {})", engine.threads(),
                     engine.threads() == 1 ? "thread" : "threads", budget.reason);
}

std::string plan_text(const Model& model, const Session& session) {
  const ModelInfo& info = model.info();
  const SessionOptions& options = session.options();
  return fmt::format(
      "model {} ({}, {:.1f} M parameters, {:.1f} MB of weights, read {}); cache {:.1f} MB for {} "
      "slots x {} positions; {}",
      info.name.empty() ? "without a name" : for_terminal(info.name), info.architecture,
      static_cast<double>(info.parameters) / 1e6, static_cast<double>(info.weight_bytes) / 1e6,
      humane_rate(info.load_bytes, info.load_seconds),
      static_cast<double>(session.cache_bytes()) / 1e6, options.slots, options.context,
      team_text(model.engine()));
}

JobContext job_context(const Model& model, const Session& session, double load_seconds,
                       double seconds) {
  const ModelInfo& info = model.info();
  const Engine& engine = model.engine();
  JobContext context;
  context.model = info.name;
  context.load_seconds = load_seconds;
  context.seconds = seconds;
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

int Batch::run() const {
  sampling.check();
  profile.check();
  require_creatable(output);
  if (!summary.empty()) require_creatable(summary);
  if (summary == output) throw Error(ErrorCode::usage, "--summary and --output name the same file");
  batch::InputFile lines(input);
  const batch::InputSurvey survey = batch::survey_input(lines);

  const Stopwatch load_watch;
  const Engine team = engine.create();
  const Model loaded = load_model(team, model_path(model));
  std::optional<ChatTemplate> chat_template;
  if (survey.has_chat) chat_template = usable_template(chat, loaded);
  SessionOptions options = session.resolve(loaded.info(), slots);
  profile.apply(options);
  Session state(loaded, options);
  const double load_seconds = load_watch.seconds();
  show_note(plan_text(loaded, state));

  batch::RequestDefaults defaults;
  defaults.max_tokens = sampling.max_tokens;
  defaults.sampling = sampling.params;
  batch::SessionModel steps(state, chat_template ? &*chat_template : nullptr);
  batch::RowWriter rows(output);
  std::optional<batch::RowWriter> summary_file;
  if (!summary.empty()) summary_file.emplace(summary);
  const StopSignals signals(state.cancel_flag());
  Progress progress(interval, show);
  const batch::JobStats stats =
      batch::run_job(steps, lines, survey, rows, defaults, signals.stop(), progress);
  rows.close();

  const JobContext context = job_context(loaded, state, load_seconds, progress.seconds());
  profile.report(state);
  show_note(summary_text(stats, context));
  note_starvation(team);
  if (summary_file) {
    summary_file->write(summary_json(stats, context));
    summary_file->close();
  }
  if (stats.interrupted) {
    throw Error(ErrorCode::interrupted, fmt::format("stopped by a signal: {} of {} rows are in {}",
                                                    stats.rows, stats.total, output));
  }
  return stats.errors == 0 ? 0 : kExitSomeErrorRows;
}

}  // namespace

Command add_batch(CLI::App& root) {
  const auto self = std::make_shared<Batch>();
  CLI::App* app = root.add_subcommand("batch", "Answer a file of requests, one row for each");
  add_model_option(*app, self->model);
  app->add_option("-i,--input", self->input, "Requests, JSONL (a regular file: it is read twice)")
      ->type_name("FILE")
      ->required();
  app->add_option("-o,--output", self->output, "Answers, JSONL; must not exist")
      ->type_name("FILE")
      ->required();
  self->sampling.add_to(*app);
  self->chat.add_to(*app, nullptr);
  self->session.add_to(*app);
  app->add_option("--slots", self->slots,
                  "Sequences computed together, 1 to 512 (default 8); changes no row")
      ->type_name("N")
      ->check(whole_number(1, 512));
  self->engine.add_to(*app);
  app->add_flag("--show", self->show, "Show each finished answer on stderr");
  app->add_option("--interval", self->interval,
                  "Between progress lines where stderr is no terminal (default 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  app->add_option("--summary", self->summary,
                  "Write a summary as JSON to this file; must not exist")
      ->type_name("FILE");
  self->profile.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
