// What the record of a batch job says: every option that can change a row belongs here. One that is
// left out can be changed by --resume without anybody noticing.
#pragma once

#include <filesystem>

#include "lockstep/lockstep.h"
#include "runtime/batch/input.h"
#include "runtime/batch/record.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/options.h"

namespace lockstep::cli {

// Before the model is loaded, so that a change is noticed in no time.
batch::JobRecord known_record(const std::filesystem::path& model, batch::InputFormat format,
                              const SamplingArguments& sampling, const SessionArguments& session);

// Adds what chats are rendered with in place of the model's own. Throws Error(no_input).
void set_chat(batch::JobRecord& record, const ChatArguments& chat);

// Adds what only the loaded model decides.
void complete_record(batch::JobRecord& record, const Model& model, const Session& session);

}  // namespace lockstep::cli
