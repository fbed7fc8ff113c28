// Methods of lists, dicts and loops. Those of texts are in text_methods.cpp.
#include "runtime/chat/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/operators.h"

namespace lockstep::jinja {
namespace {

std::string callee_of(std::string_view name) { return fmt::format("the method '{}'", name); }

Value call_dict_method(Workspace& workspace, Value self, std::string_view name,
                       const Arguments& arguments) {
  const Dict& dict = self.dict();
  if (name == "get") {
    if (!arguments.named.empty()) workspace.fail("the method 'get' takes no named arguments");
    const Bound bound(workspace, callee_of(name), arguments, {"key", "default"}, 1);
    const Value key = bound.get(0);
    if (key.is(Kind::list) || key.is(Kind::dict)) {
      workspace.fail(fmt::format("{} as a key of a dict", describe(key)));
    }
    if (key.is(Kind::string)) workspace.charge_reading(key.text().size());
    const Value* entry = dict.find(key);
    return entry ? *entry : bound.get(1);
  }
  const Bound none(workspace, callee_of(name), arguments, {});
  if (name == "copy") return self;  // nothing can tell the copy, as neither can be changed
  std::vector<Value> items;
  workspace.charge_steps(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    items.push_back(name == "keys"     ? key
                    : name == "values" ? value
                                       : workspace.tuple({key, value}));
  }
  if (name == "keys") return workspace.view("dict_keys", std::move(items));
  if (name == "values") return workspace.view("dict_values", std::move(items));
  if (name == "items") return workspace.view("dict_items", std::move(items));
  workspace.unsupported(fmt::format("the method '{}' of a dict", name));
}

Value call_list_method(Workspace& workspace, Value self, std::string_view name,
                       const Arguments& arguments) {
  const std::vector<Value>& items = self.sequence().items;
  if (!arguments.named.empty()) {
    workspace.fail(fmt::format("the method '{}' takes no named arguments", name));
  }
  if (name == "copy") {
    const Bound none(workspace, callee_of(name), arguments, {});
    return self;
  }
  if (name == "count") {
    const Bound bound(workspace, callee_of(name), arguments, {"value"}, 1);
    return Value(
        static_cast<std::int64_t>(std::count_if(items.begin(), items.end(), [&](Value candidate) {
          return equal(workspace, candidate, bound.get(0));
        })));
  }
  if (name == "index" && arguments.positional.size() < 2) {
    const Bound bound(workspace, callee_of(name), arguments, {"value"}, 1);
    const auto at = std::find_if(items.begin(), items.end(), [&](Value candidate) {
      return equal(workspace, candidate, bound.get(0));
    });
    if (at == items.end()) workspace.fail("the method 'index' does not find the value");
    return Value(static_cast<std::int64_t>(at - items.begin()));
  }
  workspace.unsupported(fmt::format("the method '{}' of {}", name, describe(self)));
}

Value call_loop_method(Workspace& workspace, Loop& loop, std::string_view name,
                       const Arguments& arguments) {
  if (!arguments.named.empty()) {
    workspace.fail(fmt::format("loop.{} takes no named arguments", name));
  }
  const std::vector<Value>& values = arguments.positional;
  if (name == "cycle") {
    if (values.empty()) workspace.fail("loop.cycle is given no items");
    return values[static_cast<std::size_t>(loop.index0) % values.size()];
  }
  const Value now = workspace.tuple(values);
  const bool changed = !loop.last_changed || !equal(workspace, *loop.last_changed, now);
  if (changed) loop.last_changed = now;
  return Value(changed);
}

}  // namespace

Value call_method(Workspace& workspace, const Callable& method, const Arguments& arguments) {
  const Value self = method.self;
  switch (self.kind()) {
    case Kind::string:
      return call_text_method(workspace, self, method.name, arguments);
    case Kind::dict:
      return call_dict_method(workspace, self, method.name, arguments);
    case Kind::list:
    case Kind::tuple:
      return call_list_method(workspace, self, method.name, arguments);
    case Kind::loop:
      return call_loop_method(workspace, self.loop(), method.name, arguments);
    default:
      workspace.unsupported(fmt::format("the method '{}' of {}", method.name, describe(self)));
  }
}

}  // namespace lockstep::jinja
