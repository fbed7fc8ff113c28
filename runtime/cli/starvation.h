// Telling that the workers did not get their processors.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

struct Team {
  unsigned threads = 1;
  unsigned budget = 1;          // threads that the system has room for
  std::string_view runtime;     // Engine::openmp_runtime()
  bool spin_count_set = false;  // GOMP_SPINCOUNT
};

// One line that says how long the workers waited for a processor, and what to do; "" if that is not
// worth a line.
std::string starvation_text(const Team& team, const WorkerTime& time);

// Shows it on stderr for the time since the engine was made.
void note_starvation(const Engine& engine);

}  // namespace lockstep::cli
