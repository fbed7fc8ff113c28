// `lockstep batch --dry-run`.
#pragma once

#include "runtime/cli/batch_arguments.h"
#include "runtime/cli/rank_team.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

// Makes every check that the job would make, loads the model, counts, measures a few steps and
// prints what it found to stdout. Returns the exit code; throws Error.
int forecast_batch(const BatchArguments& arguments, RankTeam& team, const StopSignals& signals);

}  // namespace lockstep::cli
