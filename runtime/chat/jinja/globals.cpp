// The functions that every template can name.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "lockstep/error.h"
#include "runtime/chat/jinja/methods.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/printable.h"

namespace lockstep::jinja {
namespace {

constexpr std::size_t kShownMessage = 400;  // characters of a template's own message

// What dict() and namespace() are made of: a dict or pairs, then names.
std::unique_ptr<Dict> entries_of(Workspace& workspace, std::string_view name,
                                 const Arguments& arguments) {
  auto dict = std::make_unique<Dict>();
  if (arguments.positional.size() > 1) {
    workspace.fail(fmt::format("{} takes one value, not {}", name, arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Value source = arguments.positional[0];
    if (source.is(Kind::dict)) {
      for (const auto& [key, value] : source.dict().entries) workspace.set(*dict, key, value);
    } else {
      for (const Value pair : items_of(workspace, source)) {
        const std::vector<Value> parts = items_of(workspace, pair);
        if (parts.size() != 2) workspace.fail(fmt::format("{} takes pairs", name));
        workspace.set(*dict, parts[0], parts[1]);
      }
    }
  }
  for (const auto& [key, value] : arguments.named) {
    workspace.set(*dict, workspace.text(std::string(key)), value);
  }
  return dict;
}

Value call_range(Workspace& workspace, const Arguments& arguments) {
  const std::vector<Value>& values = arguments.positional;
  if (!arguments.named.empty() || values.empty() || values.size() > 3) {
    workspace.fail("range takes one to three integers");
  }
  for (const Value value : values) {
    if (!value.is_integral()) workspace.fail(fmt::format("range takes {}", describe(value)));
  }
  const std::int64_t start = values.size() > 1 ? values[0].integer() : 0;
  const std::int64_t stop = values[values.size() > 1 ? 1 : 0].integer();
  const std::int64_t step = values.size() > 2 ? values[2].integer() : 1;
  if (step == 0) workspace.fail("range with step 0");
  return workspace.range(start, stop, step);
}

[[noreturn]] void raise_exception(Workspace& workspace, const Arguments& arguments) {
  const Bound bound(workspace, "raise_exception", arguments, {"message"}, 1);
  throw Error(ErrorCode::bad_input,
              fmt::format("the chat template refuses the messages: {}",
                          printable(to_text(workspace, bound.get(0)), kShownMessage)));
}

Value strftime_now(Workspace& workspace, const Arguments& arguments, const Date& date) {
  const Bound bound(workspace, "strftime_now", arguments, {"format"}, 1);
  char unknown = 0;
  const auto text = format_date(date, bound.text(0, {}), unknown);
  if (!text) {
    workspace.unsupported(
        fmt::format("the date directive '%{}'", printable(std::string_view(&unknown, 1))));
  }
  return workspace.text(*text);
}

constexpr Callable kGlobals[] = {
    {CallableKind::global, "cycler", Value(), nullptr, nullptr},
    {CallableKind::global, "dict", Value(), nullptr, nullptr},
    {CallableKind::global, "joiner", Value(), nullptr, nullptr},
    {CallableKind::global, "lipsum", Value(), nullptr, nullptr},
    {CallableKind::global, "namespace", Value(), nullptr, nullptr},
    {CallableKind::global, "raise_exception", Value(), nullptr, nullptr},
    {CallableKind::global, "range", Value(), nullptr, nullptr},
    {CallableKind::global, "self", Value(), nullptr, nullptr},  // of templates with blocks
    {CallableKind::global, "strftime_now", Value(), nullptr, nullptr},
};

}  // namespace

const Callable* find_global(std::string_view name, bool has_date) noexcept {
  if (name == "strftime_now" && !has_date) return nullptr;
  const auto* at = std::find_if(std::begin(kGlobals), std::end(kGlobals),
                                [&](const Callable& global) { return global.name == name; });
  return at == std::end(kGlobals) ? nullptr : at;
}

Value call_global(Workspace& workspace, std::string_view name, const Arguments& arguments,
                  const std::optional<Date>& date) {
  if (name == "raise_exception") raise_exception(workspace, arguments);
  if (name == "strftime_now" && date) return strftime_now(workspace, arguments, *date);
  if (name == "range") return call_range(workspace, arguments);
  if (name == "dict") return workspace.dict(entries_of(workspace, name, arguments));
  if (name == "namespace") {
    return Value::name_space(&workspace.new_namespace(entries_of(workspace, name, arguments)));
  }
  workspace.unsupported(fmt::format("the function '{}'", name));
}

}  // namespace lockstep::jinja
