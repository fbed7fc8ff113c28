// Output rows as JSON text, newline included. Nothing in a row depends on time, threads or chance,
// so a second run of a job writes the same bytes for each line; that is why no row tells how many
// of its prompt's tokens were found in a cache. Always valid UTF-8, whatever bytes the tokens gave.
#pragma once

#include <string>
#include <string_view>

#include "runtime/batch/answer.h"
#include "runtime/batch/request.h"
#include "runtime/batch/step_model.h"

namespace lockstep::batch {

// `answer.reason` must be stop or length. The model gives its name and the texts of tokens.
std::string answer_row(const RowIdentity& row, const Finished& answer, const StepModel& model);
std::string error_row(const RequestError& error);

// "stop", "length".
std::string_view name_of(FinishReason reason) noexcept;

}  // namespace lockstep::batch
