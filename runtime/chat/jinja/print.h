// Values as text: Python's str() and repr(), which is what {{ }} writes, and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

// "1.0", "1e+16", "nan": the shortest digits that read back as the same number.
std::string real_text(double value);

// str(): a string as it is, nothing for undefined.
std::string to_text(Workspace& workspace, Value value);
// As to_text, at the end of `out`, which must stay below the longest text allowed.
void append_text(Workspace& workspace, Value value, std::string& out);
std::string repr(Workspace& workspace, Value value);

// json.dumps(). Without `indent` on one line, else each item on a line of its own behind a copy of
// `indent` for every level.
struct JsonStyle {
  bool ascii = false;  // everything outside ASCII as an escape, such as \u00e9
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string to_json(Workspace& workspace, Value value, const JsonStyle& style);

}  // namespace lockstep::jinja
