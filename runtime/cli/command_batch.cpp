// `lockstep batch`: from options to a running job, with its progress on stderr. The job itself is
// runtime/batch/.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "lockstep/lockstep.h"
#include "runtime/batch/job.h"
#include "runtime/batch/job_files.h"
#include "runtime/batch/rank_files.h"
#include "runtime/batch/replacement.h"
#include "runtime/batch/session_model.h"
#include "runtime/cli/batch_arguments.h"
#include "runtime/cli/batch_forecast.h"
#include "runtime/cli/batch_load.h"
#include "runtime/cli/batch_progress.h"
#include "runtime/cli/batch_record.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/failure.h"
#include "runtime/cli/memory_report.h"
#include "runtime/cli/progress.h"
#include "runtime/cli/rank_team.h"
#include "runtime/cli/starvation.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

namespace {

// How a job went, as far as this process is concerned.
struct Answered {
  batch::JobEnd end;
  std::size_t lines = 0;        // of the input
  std::size_t rows_before = 0;  // that were there, in the outputs of all
};

class BatchJob {
 public:
  explicit BatchJob(const BatchArguments& arguments) : job_(arguments) {}
  int run() const;

 private:
  Answered answer(RankTeam& team, const StopSignals& signals) const;
  batch::JobStats compute(RankTeam& team, batch::JobFiles& files, batch::JobRecord record,
                          const StopSignals& signals, JobContext& context) const;
  batch::JobEnd finish(const RankTeam& team, batch::JobFiles& files, const batch::JobStats& stats,
                       JobContext& context) const;
  void note_end(const batch::JobEnd& all, const Answered& answered) const;

  const BatchArguments& job_;
};

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

batch::JobStats BatchJob::compute(RankTeam& team, batch::JobFiles& files, batch::JobRecord record,
                                  const StopSignals& signals, JobContext& context) const {
  std::unique_ptr<LoadedJob> loaded;
  team.together([&] { loaded = load_job(job_, team, files.survey(), signals); });
  Session& state = loaded->session;
  batch::SessionModel steps(state, loaded->chat ? &*loaded->chat : nullptr);
  complete_record(record, loaded->model, state);
  const CancelOnDrop guard(state.cancel_flag());
  batch::RowWriter* rows = nullptr;
  team.together([&] { rows = &files.begin(record); });
  team.part_ways();

  const auto claims = team.claims(files.survey().lines);
  batch::LineSource lines = files.lines(claims.get());
  BatchProgress progress(job_.interval, job_.show);
  if (team.is_joint()) {
    progress.share({team.label(), claims.get(), files.survey().lines, !team.speaks()});
  }
  const batch::JobStats stats = batch::run_job(
      steps, lines, files.survey(), *rows, job_.defaults(loaded->model), signals.stop(), progress);

  const double seconds = progress.seconds();
  context = job_context(loaded->model, state);
  context.load_seconds = loaded->seconds;
  context.seconds = seconds;
  job_.own_profile(team).report(state);
  note_starvation(loaded->engine);
  return stats;
}

batch::JobEnd BatchJob::finish(const RankTeam& team, batch::JobFiles& files,
                               const batch::JobStats& stats, JobContext& context) const {
  files.finish(!stats.interrupted);
  context.exit_code = stats.interrupted   ? static_cast<int>(ErrorCode::interrupted)
                      : stats.errors == 0 ? 0
                                          : kExitSomeErrorRows;
  context.peak_bytes = peak_memory();
  show_note(team.label() + summary_text(stats, context));
  if (!job_.summary.empty()) {
    batch::Replacement file(team.own_file(job_.summary));
    file.write(summary_json(stats, context));
    file.commit();
  }
  if (stats.interrupted) {
    const std::string where =
        job_.output == "-" ? "standard output" : team.own_file(job_.output).string();
    show_error(
        ErrorCode::interrupted,
        fmt::format("{}stopped by a signal: {} of {} rows are in {}{}", team.label(), stats.rows,
                    stats.total, where, job_.output == "-" ? "" : "; --resume goes on"));
  }
  return {context.exit_code, stats.rows - stats.resumed, stats.errors - files.finished().errors};
}

Answered BatchJob::answer(RankTeam& team, const StopSignals& signals) const {
  batch::JobRecord known;
  team.together([&] {
    job_.check();
    known = job_.record();
  });
  team.settle([&] { return job_.identity(known); });
  std::optional<batch::JobFiles> files;
  team.together([&] {
    job_.check_outputs(team);
    files.emplace(job_.files(team, signals), known);
  });
  team.require_same(files->state());
  for (const std::string& note : files->notes()) show_note(team.label() + note);
  JobContext context;
  batch::JobStats stats;
  if (files->complete(team.claims(files->survey().lines).get())) {
    team.part_ways();
    stats.total = stats.rows = stats.resumed = files->finished().rows;
    stats.errors = files->finished().errors;
  } else {
    stats = compute(team, *files, known, signals, context);
  }
  context.input_format = name_of(job_.format());
  context.rank = team.place().index;
  context.ranks = team.place().count;
  return {finish(team, *files, stats, context), files->survey().lines, files->finished_by_all()};
}

// One line for all ranks, behind those of each.
void BatchJob::note_end(const batch::JobEnd& all, const Answered& answered) const {
  if (all.code > kExitSomeErrorRows) return;
  const std::size_t rows = answered.rows_before + all.rows;
  if (rows != answered.lines) {
    throw Error(ErrorCode::internal,
                fmt::format("all ranks ended well, and there are {} rows for {} lines", rows,
                            answered.lines));
  }
  const std::string files = batch::rank_files_pattern(job_.output);
  show_note(fmt::format("all ranks: {} of {} rows are in {}; lockstep merge -i {} -o {} {}", rows,
                        answered.lines, files, job_.input, job_.output, files));
}

int BatchJob::run() const {
  const StopSignals signals(job_.grace);
  RankTeam team(job_.shard);
  Answered own;
  try {
    if (job_.dry_run) {
      own.end.code = forecast_batch(job_, team, signals);
    } else {
      own = answer(team, signals);
    }
  } catch (...) {
    own.end.code = show_current_exception(team.label());
  }
  const batch::JobEnd all = team.finish(own.end);
  if (team.is_joint() && team.speaks() && !job_.dry_run) note_end(all, own);
  return all.code;
}

}  // namespace

Command add_batch(CLI::App& root) {
  const auto arguments = std::make_shared<BatchArguments>();
  CLI::App* app = root.add_subcommand("batch", "Answer a file of requests, one row for each");
  arguments->add_to(*app);
  return {app, [arguments] { return BatchJob(*arguments).run(); }};
}

}  // namespace lockstep::cli
