// What --profile shows: where the time went, as tables and as a timeline.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/profile.h"

namespace lockstep::cli {

// By shape of step, those that took longest: its stages, and its ops; alike ones of all layers
// added up.
std::string profile_text(const Profile& profile);
// The timeline in the trace event format of Chrome ("JSON Object Format"; chrome://tracing and
// ui.perfetto.dev open it): a row per worker, an event per stage and one per wait at a barrier.
std::string profile_trace(const Profile& profile);

// Shows the tables on stderr, and writes the timeline to `trace` unless that is empty.
void report_profile(const Profile& profile, const std::filesystem::path& trace);

}  // namespace lockstep::cli
