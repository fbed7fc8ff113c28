// The advice follows perf/crowding.py: beside a busy loop on every core decoding took 3.9 times as
// long as alone with libgomp's default, and 2.1 times with a short spin, which cost nothing alone.
#include "runtime/cli/starvation.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/cli/console.h"
#include "topology/budget.h"

namespace lockstep::cli {

std::string starvation_text(const Team& team, const WorkerTime& time) {
  // A little queueing is everywhere; a short run tells nothing.
  if (time.running + time.starved < 0.5 || time.starved_share() < 0.1) return "";
  const std::string reason =
      team.threads > team.budget
          ? fmt::format("{} threads share what {} can use; give fewer --threads", team.threads,
                        team.budget)
          : "other processes run on their cores; ask for cores of your own (sbatch --exclusive) or "
            "give fewer --threads";
  const bool spins_long = team.runtime.starts_with("libgomp") && !team.spin_count_set;
  return fmt::format(
      "the workers were ready to run but waited for a processor {:.0f} % of the time: {}{}",
      100 * time.starved_share(), reason,
      spins_long ? "; GOMP_SPINCOUNT=2000 makes waiting for each other cheaper" : "");
}

void note_starvation(const Engine& engine) {
  const Team team{engine.threads(), engine.budget().threads, engine.openmp_runtime(),
                  std::getenv("GOMP_SPINCOUNT") != nullptr};
  const std::string text = starvation_text(team, engine.worker_time());
  if (!text.empty()) show_note(text);
}

}  // namespace lockstep::cli
