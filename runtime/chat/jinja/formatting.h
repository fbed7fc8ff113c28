// Text with places for values: "%s and %d" as the operator % and the filter `format` fill it, and
// "{} and {name}" as str.format() does. Widths, precisions of texts and nested fields are refused.
#pragma once

#include "runtime/chat/jinja/arguments.h"
#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

// `values`: a tuple of what goes in, a dict for %(name)s, or the one value.
Value format_percent(Workspace& workspace, Value format, Value values);
Value format_braces(Workspace& workspace, Value format, const Arguments& arguments);

}  // namespace lockstep::jinja
