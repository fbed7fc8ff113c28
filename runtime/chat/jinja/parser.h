// From a template's text to its syntax tree, names resolved. Tags, filters and tests that are not
// supported are refused here, by name and line.
#pragma once

#include <string_view>

#include "runtime/chat/jinja/syntax.h"

namespace lockstep::jinja {

// Throws Error(bad_model).
SyntaxTree parse(std::string_view source);

}  // namespace lockstep::jinja
