// The state of a running `for`, which is also what the variable `loop` shows. Items are fetched one
// at a time, and one ahead when `loop.last` or `loop.nextitem` is asked for, as in Jinja: a filter
// of the loop may look at namespaces that the body writes to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/chat/jinja/value.h"

namespace lockstep::jinja {

class Workspace;

// The variables of one run of the template, of a macro or of a call block's body.
struct Activation {
  Activation* parent = nullptr;  // that of the text around a macro's definition
  std::vector<Value> slots;
};

struct Loop {
  std::function<bool(Value&)> fetch;   // the next item; false at the end
  std::optional<std::int64_t> length;  // if it is known without fetching all
  std::optional<Value> current, before;
  std::optional<Value> after;  // fetched ahead
  std::int64_t index0 = -1;
  std::optional<Value> last_changed;  // what loop.changed was called with: a tuple

  // Goes on to the next item; false at the end.
  bool advance();
  // Fetches one ahead; nothing at the end.
  const std::optional<Value>& peek();
  // Fetches the rest if it has to.
  std::int64_t total(Workspace& workspace);
};

}  // namespace lockstep::jinja
