// Resolving names, once, after parsing.
#pragma once

#include "runtime/chat/jinja/syntax.h"

namespace lockstep::jinja {

// Gives every name and scope of the tree its place. Throws Error(bad_model) for assignments to
// `loop` inside a loop, and for a macro with a parameter `caller` that has no default.
void resolve_names(SyntaxTree& tree);

}  // namespace lockstep::jinja
