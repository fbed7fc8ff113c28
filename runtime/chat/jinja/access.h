// Reading attributes, items and slices, by the rules of Jinja's immutable sandbox: `a.b` is the
// attribute and then the item, `a['b']` the item and then the attribute, and whatever could change
// a value is undefined.
#pragma once

#include <string_view>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

Value attribute(Workspace& workspace, Value object, std::string_view name);
Value item(Workspace& workspace, Value object, Value key);
// object[start:stop:step]; none for what is left out.
Value slice(Workspace& workspace, Value object, Value start, Value stop, Value step);

}  // namespace lockstep::jinja
