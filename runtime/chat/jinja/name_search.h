// Whether a piece of a template reads a name that it did not store in before.
#pragma once

#include <string_view>

#include "runtime/chat/jinja/syntax.h"

namespace lockstep::jinja {

// In the order of the text, macros and loops inside included.
bool reads_undeclared(const Body& body, std::string_view name);

}  // namespace lockstep::jinja
