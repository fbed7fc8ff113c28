// How fast steps are of the size that a batch job will make: a few of them, measured.
#pragma once

#include <cstddef>

#include "lockstep/lockstep.h"

namespace lockstep::bench {

struct StepRates {
  double prompt_tokens_per_s = 0;  // of prompts alone
  double answer_tokens_per_s = 0;  // of `together` sequences, one token each per step
  std::size_t together = 0;
};

// `depth`: positions that a sequence has on the average, 1 at least; what the context has no room
// for is left away. `together`: sequences that answer at once; fewer if the cache has no room for
// them. The session must have been made with share_prefixes; its slots are empty before and after.
// Throws Error(interrupted) when its cancel flag is up.
StepRates measure_step_rates(Session& session, std::size_t depth, std::size_t together);

}  // namespace lockstep::bench
