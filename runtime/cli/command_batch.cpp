// `lockstep batch`: from options to a running job, with its progress on stderr. The job itself is
// runtime/batch/.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "lockstep/lockstep.h"
#include "runtime/batch/dry_run.h"
#include "runtime/batch/job.h"
#include "runtime/batch/job_files.h"
#include "runtime/batch/prompt.h"
#include "runtime/batch/rank_files.h"
#include "runtime/batch/replacement.h"
#include "runtime/batch/session_model.h"
#include "runtime/bench/step_rates.h"
#include "runtime/chat/chat_template.h"
#include "runtime/cli/batch_progress.h"
#include "runtime/cli/batch_record.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/dry_run_report.h"
#include "runtime/cli/failure.h"
#include "runtime/cli/memory_options.h"
#include "runtime/cli/memory_report.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/rank_team.h"
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
truncate_prompt_tokens; a chat also tools and chat_template_kwargs. A prompt may be an array of
token ids. In a file that is named *.txt, or with --input-format text, each line is a prompt.

Output: one row per request in the order of completion, with the line number; a request that
cannot be answered becomes an error row. Rows are the same bytes in every run.

A job that was stopped or killed goes on with --resume: finished rows are kept as they are. What
the rows were made from is recorded in OUTPUT.job, and a changed input, model or option is refused.

Several processes share a job by MPI (mpirun) or by line number (--shard). Each writes a file of its
own, answers.rank-0.jsonl and so on; lockstep merge joins them. --resume takes any number of them.

Examples:
  lockstep batch --input requests.jsonl --output answers.jsonl
  lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --slots 16 --max-tokens 256 --resume
  lockstep batch -i prompts.txt -o - | jq -r .text
  mpirun --map-by numa lockstep batch -m model.gguf -i in.jsonl -o out.jsonl
  srun lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --shard slurm
)";

// A model that is ready to compute.
struct Loaded {
  Engine engine;
  Model model;
  Session session;
  std::optional<ChatTemplate> chat;  // if the job has chats
  double seconds = 0;
};

// How a job went, as far as this process is concerned.
struct Answered {
  batch::JobEnd end;
  std::size_t lines = 0;        // of the input
  std::size_t rows_before = 0;  // that were there, in the outputs of all
};

struct Batch {
  std::string model, input, output, summary;
  std::string input_format = "auto", shard;
  EngineArguments engine;
  SessionArguments session;
  JobSizeArguments size;
  SamplingArguments sampling;
  ChatArguments chat;
  ProfileArguments profile;
  double interval = 10;
  double grace = 10;
  bool show = false, resume = false, sorted = false;
  bool token_ids = false, truncate_prompt = false;
  bool dry_run = false, json = false;

  int run() const;
  void check_options() const;
  void check_outputs(const RankTeam& team) const;
  ProfileArguments own_profile(const RankTeam& team) const;
  batch::InputFormat format() const;
  batch::JobFilesOptions files(const RankTeam& team, const StopSignals& signals) const;
  batch::JobIdentity identity(const batch::JobRecord& record) const;
  Answered answer(RankTeam& team, const StopSignals& signals) const;
  std::unique_ptr<Loaded> load(const RankTeam& team, const batch::InputSurvey& survey,
                               const StopSignals& signals) const;
  batch::JobRecord record() const;
  batch::RequestDefaults defaults(const Model& loaded) const;
  int forecast(const StopSignals& signals) const;
  DryRun rehearse(RankTeam& team, batch::JobFiles& files, const StopSignals& signals) const;
  batch::JobStats compute(RankTeam& team, batch::JobFiles& files, batch::JobRecord record,
                          const StopSignals& signals, JobContext& context) const;
  batch::JobEnd finish(const RankTeam& team, batch::JobFiles& files, const batch::JobStats& stats,
                       JobContext& context) const;
  void note_end(const batch::JobEnd& all, const Answered& answered) const;
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

void Batch::check_options() const {
  sampling.check();
  if (output.empty() && !dry_run) {
    throw Error(ErrorCode::usage, "--output is required, unless with --dry-run");
  }
  if (json && !dry_run) throw Error(ErrorCode::usage, "--json is for --dry-run; see --summary");
  if (output == "-" && (resume || sorted)) {
    throw Error(ErrorCode::usage, "--resume and --sorted need an --output that is a file");
  }
  if (!summary.empty() && summary == output) {
    throw Error(ErrorCode::usage, "--summary and --output name the same file");
  }
}

void Batch::check_outputs(const RankTeam& team) const {
  own_profile(team).check();
  if (output == "-" && team.has_parts()) {
    throw Error(ErrorCode::usage, "processes that share a job need an --output that is a file");
  }
  // A job script that resumes writes the summary again.
  if (!summary.empty()) require_output(team.own_file(summary).string(), resume);
}

// Ranks have timelines of their own.
ProfileArguments Batch::own_profile(const RankTeam& team) const {
  ProfileArguments own = profile;
  if (!own.trace.empty()) own.trace = team.own_file(own.trace).string();
  return own;
}

batch::InputFormat Batch::format() const { return batch::format_named(input_format, input); }

batch::JobFilesOptions Batch::files(const RankTeam& team, const StopSignals& signals) const {
  batch::JobFilesOptions options;
  options.input = input;
  options.output = output.empty() ? "-" : team.own_file(output);
  if (options.output != "-") options.others = team.other_files(output, resume);
  options.format = format();
  options.resume = resume;
  options.sorted = sorted;
  options.flags = {&signals.stop(), &signals.drop()};
  return options;
}

batch::JobIdentity Batch::identity(const batch::JobRecord& record) const {
  batch::JobIdentity job;
  std::error_code error;
  job.input = std::filesystem::weakly_canonical(input, error).string();
  const std::uint64_t bytes = std::filesystem::file_size(input, error);
  if (!error) job.input_bytes = bytes;
  job.output = output == "-" ? output : std::filesystem::weakly_canonical(output, error).string();
  job.options = record.options;
  job.options["model"] =
      fmt::format("{} bytes with hash {}", record.model.bytes, record.model.hash);
  job.options["ctx"] = std::to_string(session.context);
  job.options["resume"] = resume ? "true" : "false";
  return job;
}

std::unique_ptr<Loaded> Batch::load(const RankTeam& team, const batch::InputSurvey& survey,
                                    const StopSignals& signals) const {
  const Stopwatch watch;
  EngineArguments arguments = engine;
  arguments.sharers = team.sharers();
  const Engine workers = arguments.create();
  SessionOptions options;
  std::optional<ChatTemplate> chat_template;
  const auto fit = [&](const Model& known) {
    if (survey.has_chat) chat_template = usable_template(chat, known);
    const auto& sharers = team.sharers();
    options = size.fit(session, known, sharers ? sharers->ranks : 1);
    if (dry_run) options.share_prefixes = true;  // what is measured is quicker to prepare
  };
  const Model weights = load_model(workers, model_path(model), &signals.stop(), fit);
  profile.apply(options);
  auto loaded = std::make_unique<Loaded>(
      Loaded{workers, weights, Session(weights, options), std::move(chat_template)});
  loaded->seconds = watch.seconds();
  show_note(team.label() + model_text(weights));
  return loaded;
}

batch::RequestDefaults Batch::defaults(const Model& loaded) const {
  batch::RequestDefaults defaults;
  defaults.max_tokens = sampling.max_tokens;
  defaults.sampling = sampling.params;
  defaults.token_ids = token_ids;
  defaults.truncate_prompt = truncate_prompt;
  defaults.vocabulary = loaded.info().vocabulary;
  return defaults;
}

// What is known before the model is loaded.
batch::JobRecord Batch::record() const {
  batch::JobRecord record = known_record(model_path(model), format(), sampling, session);
  record.set("token_ids", token_ids);
  record.set("truncate_prompt", truncate_prompt);
  set_chat(record, chat);
  return record;
}

batch::JobStats Batch::compute(RankTeam& team, batch::JobFiles& files, batch::JobRecord record,
                               const StopSignals& signals, JobContext& context) const {
  std::unique_ptr<Loaded> loaded;
  team.together([&] { loaded = load(team, files.survey(), signals); });
  Session& state = loaded->session;
  batch::SessionModel steps(state, loaded->chat ? &*loaded->chat : nullptr);
  complete_record(record, loaded->model, state);
  const CancelOnDrop guard(state.cancel_flag());
  batch::RowWriter* rows = nullptr;
  team.together([&] { rows = &files.begin(record); });
  team.part_ways();

  const auto claims = team.claims(files.survey().lines);
  batch::LineSource lines = files.lines(claims.get());
  BatchProgress progress(interval, show);
  if (team.is_joint()) {
    progress.share({team.label(), claims.get(), files.survey().lines, !team.speaks()});
  }
  const batch::JobStats stats = batch::run_job(steps, lines, files.survey(), *rows,
                                               defaults(loaded->model), signals.stop(), progress);

  const double seconds = progress.seconds();
  context = job_context(loaded->model, state);
  context.load_seconds = loaded->seconds;
  context.seconds = seconds;
  own_profile(team).report(state);
  note_starvation(loaded->engine);
  return stats;
}

batch::JobEnd Batch::finish(const RankTeam& team, batch::JobFiles& files,
                            const batch::JobStats& stats, JobContext& context) const {
  files.finish(!stats.interrupted);
  context.exit_code = stats.interrupted   ? static_cast<int>(ErrorCode::interrupted)
                      : stats.errors == 0 ? 0
                                          : kExitSomeErrorRows;
  context.peak_bytes = peak_memory();
  show_note(team.label() + summary_text(stats, context));
  if (!summary.empty()) {
    batch::Replacement file(team.own_file(summary));
    file.write(summary_json(stats, context));
    file.commit();
  }
  if (stats.interrupted) {
    const std::string where = output == "-" ? "standard output" : team.own_file(output).string();
    show_error(
        ErrorCode::interrupted,
        fmt::format("{}stopped by a signal: {} of {} rows are in {}{}", team.label(), stats.rows,
                    stats.total, where, output == "-" ? "" : "; --resume goes on"));
  }
  return {context.exit_code, stats.rows - stats.resumed, stats.errors - files.finished().errors};
}

Answered Batch::answer(RankTeam& team, const StopSignals& signals) const {
  batch::JobRecord known;
  team.together([&] {
    check_options();
    known = record();
  });
  team.settle([&] { return identity(known); });
  std::optional<batch::JobFiles> job;
  team.together([&] {
    check_outputs(team);
    job.emplace(files(team, signals), known);
  });
  team.require_same(job->state());
  for (const std::string& note : job->notes()) show_note(team.label() + note);
  JobContext context;
  batch::JobStats stats;
  if (job->complete(team.claims(job->survey().lines).get())) {
    team.part_ways();
    stats.total = stats.rows = stats.resumed = job->finished().rows;
    stats.errors = job->finished().errors;
  } else {
    stats = compute(team, *job, known, signals, context);
  }
  context.input_format = name_of(format());
  context.rank = team.place().index;
  context.ranks = team.place().count;
  return {finish(team, *job, stats, context), job->survey().lines, job->finished_by_all()};
}

// One line for all ranks, behind those of each.
void Batch::note_end(const batch::JobEnd& all, const Answered& answered) const {
  if (all.code > kExitSomeErrorRows) return;
  const std::size_t rows = answered.rows_before + all.rows;
  if (rows != answered.lines) {
    throw Error(ErrorCode::internal,
                fmt::format("all ranks ended well, and there are {} rows for {} lines", rows,
                            answered.lines));
  }
  const std::string files = batch::rank_files_pattern(output);
  show_note(fmt::format("all ranks: {} of {} rows are in {}; lockstep merge -i {} -o {} {}", rows,
                        answered.lines, files, input, output, files));
}

DryRun Batch::rehearse(RankTeam& team, batch::JobFiles& files, const StopSignals& signals) const {
  const std::unique_ptr<Loaded> loaded = load(team, files.survey(), signals);
  Session& state = loaded->session;
  const batch::SessionModel steps(state, loaded->chat ? &*loaded->chat : nullptr);
  const CacheRoom room = state.cache_room();
  KvBlocks::Options cache;
  cache.context = state.options().context;
  cache.block = room.block;
  cache.blocks = room.total / room.block;
  cache.share = !size.no_prefix_reuse;
  DryRun run;
  run.session = state.options();
  run.weight_bytes = loaded->model.info().weight_bytes;
  run.cache_bytes = state.cache_bytes();
  run.load_seconds = loaded->seconds;

  const auto claims = team.claims(files.survey().lines);
  batch::LineSource lines = files.lines(claims.get());
  const Stopwatch watch;
  PacedProgress progress;
  run.job = batch::forecast_job(steps, lines, files.survey(), defaults(loaded->model), cache,
                                {&signals.stop()}, [&](std::size_t done) {
                                  progress.show(watch.seconds(), [&] {
                                    return fmt::format("{} of {} lines counted", grouped(done),
                                                       grouped(files.survey().lines));
                                  });
                                });
  if (run.job.requests == 0) return run;
  const CancelOnDrop guard(state.cancel_flag());
  run.rates = bench::measure_step_rates(state, mean_depth(run.job),
                                        answering_together(run.job, run.session.slots, room.total));
  return run;
}

// Makes every check that the job would make, and nothing else that it would.
int Batch::forecast(const StopSignals& signals) const {
  RankTeam team(shard);
  team.settle([] { return batch::JobIdentity{}; });
  if (team.is_joint()) {
    throw Error(ErrorCode::usage, "--dry-run is for a single process, not for mpirun");
  }
  check_options();
  check_outputs(team);
  batch::JobFiles job(files(team, signals), record());
  for (const std::string& note : job.notes()) show_note(note);
  const DryRun run = rehearse(team, job, signals);
  clear_status();
  print(json ? dry_run_json(run) : dry_run_text(run));
  return run.job.errors == 0 ? 0 : kExitSomeErrorRows;
}

int Batch::run() const {
  const StopSignals signals(grace);
  if (dry_run) return forecast(signals);
  RankTeam team(shard);
  Answered own;
  try {
    own = answer(team, signals);
  } catch (...) {
    own.end.code = show_current_exception(team.label());
  }
  const batch::JobEnd all = team.finish(own.end);
  if (team.is_joint() && team.speaks()) note_end(all, own);
  return all.code;
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
                  "Answers, JSONL; must not exist unless --resume; - for standard output.\n"
                  "Required, unless with --dry-run")
      ->type_name("FILE");
  app->add_flag("--resume", self->resume,
                "Go on with an output that exists; start from the beginning if there is none");
  app->add_flag("--sorted", self->sorted,
                "Put the rows in the order of the input when all are there");
  app->add_flag("--dry-run", self->dry_run,
                "Answer and write nothing: check every line, count tokens, and estimate\n"
                "memory and time from a few steps");
  app->add_flag("--json", self->json, "With --dry-run: print the estimate as JSON");
  app->add_option("--shard", self->shard,
                  "Answer part of the input, beside other processes that answer the\n"
                  "rest: i/n (0/4 to 3/4), slurm (task of an array or of srun), auto\n"
                  "(whatever started it), mpi, none; default: mpi under mpirun")
      ->type_name("PART");
  self->sampling.add_to(*app);
  self->sampling.add_logprobs_to(*app);
  app->add_flag("--token-ids", self->token_ids,
                "Write the token ids of prompt and answer to every row");
  app->add_flag("--truncate-prompt", self->truncate_prompt,
                "Cut the front of prompts that leave no room for max_tokens, and say\n"
                "so in the row (default: such a prompt is an error row if it fills\n"
                "the context, else its answer is shorter)");
  self->chat.add_to(*app, nullptr);
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
