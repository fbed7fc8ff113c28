// The filters and tests of Jinja that are supported, by name.
#pragma once

#include <string_view>

#include "runtime/chat/jinja/arguments.h"
#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

using Filter = Value (*)(Workspace& workspace, Value value, const Arguments& arguments);
using Test = bool (*)(Workspace& workspace, Value value, const Arguments& arguments);

struct NamedFilter {
  std::string_view name;
  Filter function;
};
struct NamedTest {
  std::string_view name;
  Test function;
};

// Null for a name that is not known or not supported.
Filter find_filter(std::string_view name) noexcept;
Test find_test(std::string_view name) noexcept;
// Whether the name is one of Jinja's filters that are not supported.
bool is_other_jinja_filter(std::string_view name) noexcept;

// A value as a string value: itself if it is one, else its text.
Value as_string(Workspace& workspace, Value value);
// lower() for strings, other values as they are: how sort and the like compare by default.
Value without_case(Workspace& workspace, Value value);

}  // namespace lockstep::jinja
