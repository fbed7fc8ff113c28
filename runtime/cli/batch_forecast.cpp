// See batch_forecast.h.
#include "runtime/cli/batch_forecast.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "runtime/batch/dry_run.h"
#include "runtime/batch/job_files.h"
#include "runtime/batch/session_model.h"
#include "runtime/bench/step_rates.h"
#include "runtime/cli/batch_load.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/dry_run_report.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/cli/units.h"

namespace lockstep::cli {

namespace {

DryRun rehearse(const BatchArguments& job, RankTeam& team, batch::JobFiles& files,
                const StopSignals& signals) {
  const std::unique_ptr<LoadedJob> loaded = load_job(job, team, files.survey(), signals);
  Session& state = loaded->session;
  const batch::SessionModel steps(state, loaded->chat ? &*loaded->chat : nullptr);
  const CacheRoom room = state.cache_room();
  KvBlocks::Options cache;
  cache.context = state.options().context;
  cache.block = room.block;
  cache.blocks = room.total / room.block;
  cache.share = !job.size.no_prefix_reuse;
  DryRun run;
  run.session = state.options();
  run.weight_bytes = loaded->model.info().weight_bytes;
  run.cache_bytes = state.cache_bytes();
  run.load_seconds = loaded->seconds;

  const auto claims = team.claims(files.survey().lines);
  batch::LineSource lines = files.lines(claims.get());
  const Stopwatch watch;
  PacedProgress progress;
  run.job = batch::forecast_job(steps, lines, files.survey(), job.defaults(loaded->model), cache,
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

}  // namespace

int forecast_batch(const BatchArguments& arguments, RankTeam& team, const StopSignals& signals) {
  team.settle([] { return batch::JobIdentity{}; });
  team.part_ways();
  if (team.is_joint()) {
    throw Error(ErrorCode::usage, "--dry-run is for a single process, not for mpirun");
  }
  arguments.check();
  arguments.check_outputs(team);
  batch::JobFiles files(arguments.files(team, signals), arguments.record());
  for (const std::string& note : files.notes()) show_note(note);
  const DryRun run = rehearse(arguments, team, files, signals);
  clear_status();
  print(arguments.json ? dry_run_json(run) : dry_run_text(run));
  return run.job.errors == 0 ? 0 : kExitSomeErrorRows;
}

}  // namespace lockstep::cli
