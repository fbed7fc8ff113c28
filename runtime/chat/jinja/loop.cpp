// See loop.h.
#include "runtime/chat/jinja/loop.h"

#include <memory>
#include <utility>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

bool Loop::advance() {
  Value next;
  if (after) {
    next = *after;
    after.reset();
  } else if (!fetch(next)) {
    return false;
  }
  ++index0;
  before = std::exchange(current, next);
  return true;
}

const std::optional<Value>& Loop::peek() {
  Value next;
  if (!after && fetch(next)) after = next;
  return after;
}

std::int64_t Loop::total(Workspace& workspace) {
  if (length) return *length;
  std::vector<Value> rest;
  for (Value item; fetch(item);) rest.push_back(item);
  length = static_cast<std::int64_t>(rest.size()) + index0 + 1 + (after ? 1 : 0);
  const Value items = workspace.list(std::move(rest));
  fetch = [&items = items.sequence().items, next = std::size_t{0}](Value& item) mutable {
    if (next == items.size()) return false;
    item = items[next++];
    return true;
  };
  return *length;
}

}  // namespace lockstep::jinja
