// Calling methods of values and the functions that every template can name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/chat/jinja/arguments.h"
#include "runtime/chat/jinja/strftime.h"
#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

// `method` is a Callable of kind method. Methods of Python that are not supported are refused by
// name.
Value call_method(Workspace& workspace, const Callable& method, const Arguments& arguments);
Value call_text_method(Workspace& workspace, Value self, std::string_view name,
                       const Arguments& arguments);

// The Callable of a name that templates have without being given it, or null. strftime_now is one
// only if there is a date.
const Callable* find_global(std::string_view name, bool has_date) noexcept;
Value call_global(Workspace& workspace, std::string_view name, const Arguments& arguments,
                  const std::optional<Date>& date);

}  // namespace lockstep::jinja
