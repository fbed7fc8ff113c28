// A batch job's model, ready to compute.
#pragma once

#include <memory>
#include <optional>

#include "lockstep/lockstep.h"
#include "runtime/batch/input.h"
#include "runtime/chat/chat_template.h"
#include "runtime/cli/batch_arguments.h"
#include "runtime/cli/rank_team.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

struct LoadedJob {
  Engine engine;
  Model model;
  Session session;
  std::optional<ChatTemplate> chat;  // if the job has chats
  double seconds = 0;                // that loading took
};

// Fits the session into memory and checks the chat template before the weights are read; tells on
// stderr what was planned and loaded. Throws Error.
std::unique_ptr<LoadedJob> load_job(const BatchArguments& job, const RankTeam& team,
                                    const batch::InputSurvey& survey, const StopSignals& signals);

}  // namespace lockstep::cli
