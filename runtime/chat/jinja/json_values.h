// JSON as values of a template. Internal to runtime/chat: keeps nlohmann/json out of the other
// headers.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

// Objects keep their order. Throws Error(bad_input) for integers of more than 64 bits.
Value from_json(Workspace& workspace, const nlohmann::ordered_json& json);

}  // namespace lockstep::jinja
