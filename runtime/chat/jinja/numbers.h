// Reading numbers from text as Python's int() and float() do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

// Nothing for what Python raises a ValueError for. Text outside ASCII and integers of more than 64
// bits are refused as not supported.
std::optional<std::int64_t> parse_integer(Workspace& workspace, std::string_view text);
std::optional<double> parse_real(Workspace& workspace, std::string_view text);

// Digits with single underscores between them, without them; nothing for anything else.
std::optional<std::string> plain_digits(std::string_view text);

}  // namespace lockstep::jinja
