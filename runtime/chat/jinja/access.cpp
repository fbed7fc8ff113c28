// See access.h. Python's attributes matter even where no template wants them: a JSON schema has a
// key "items", and `schema.items` is the method all the same.
#include "runtime/chat/jinja/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/unicode.h"
#include "runtime/printable.h"

namespace lockstep::jinja {
namespace {

constexpr std::string_view kTextMethods[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kDictMethods[] = {"copy", "fromkeys", "get", "items", "keys", "values"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"copy", "count", "index"};
constexpr std::string_view kListChanges[] = {"append", "clear",  "extend",  "insert",
                                             "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kNumberAttributes[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};
constexpr std::string_view kOtherAttributes[] = {"close", "count", "index", "isdisjoint", "mapping",
                                                 "send",  "start", "step",  "stop",       "throw"};
constexpr std::string_view kMacroAttributes[] = {"arguments", "caller", "catch_kwargs",
                                                 "catch_varargs", "explicit_caller"};

template <std::size_t kSize>
bool among(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value method(Workspace& workspace, Value self, std::string_view name) {
  return workspace.callable({CallableKind::method, name, self, nullptr, nullptr});
}

Value missing_attribute(Workspace& workspace, Value object, std::string_view name) {
  return workspace.undefined(fmt::format("{} has no '{}'", describe(object), printable(name)));
}

Value forbidden(Workspace& workspace, Value object, std::string_view name) {
  return workspace.undefined(fmt::format("'{}' would change {}", name, describe(object)));
}

Value loop_attribute(Workspace& workspace, Value object, std::string_view name) {
  Loop& loop = object.loop();
  const std::int64_t index = loop.index0 + 1;
  if (name == "index") return Value(index);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(!loop.peek());
  if (name == "length") return Value(loop.total(workspace));
  if (name == "revindex") return Value(loop.total(workspace) - loop.index0);
  if (name == "revindex0") return Value(loop.total(workspace) - index);
  if (name == "depth") return Value(std::int64_t{1});  // recursive loops are refused
  if (name == "depth0") return Value(std::int64_t{0});
  if (name == "previtem") {
    return loop.index0 > 0 ? *loop.before : workspace.undefined("there is no previous item");
  }
  if (name == "nextitem") {
    const std::optional<Value> next = loop.peek();
    return next ? *next : workspace.undefined("there is no next item");
  }
  if (name == "cycle") return method(workspace, object, "cycle");
  if (name == "changed") return method(workspace, object, "changed");
  return missing_attribute(workspace, object, name);
}

template <std::size_t kSize>
std::optional<Value> method_among(Workspace& workspace, Value object, std::string_view name,
                                  const std::string_view (&names)[kSize]) {
  const auto* at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names)) return std::nullopt;
  return method(workspace, object, *at);  // the table's spelling, which stays
}

// What Python's getattr() finds; nothing if it finds nothing.
std::optional<Value> python_attribute(Workspace& workspace, Value object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return forbidden(workspace, object, name);
  const auto refuse_if = [&](bool there) -> std::optional<Value> {
    if (there) workspace.unsupported(fmt::format("'{}' of {}", name, describe(object)));
    return std::nullopt;
  };
  switch (object.kind()) {
    case Kind::string:
      return method_among(workspace, object, name, kTextMethods);
    case Kind::list:
      if (among(kListChanges, name)) return forbidden(workspace, object, name);
      return method_among(workspace, object, name, kListMethods);
    case Kind::dict:
      if (among(kDictChanges, name)) return forbidden(workspace, object, name);
      return method_among(workspace, object, name, kDictMethods);
    case Kind::tuple:
      return method_among(workspace, object, name, kTupleMethods);
    case Kind::name_space:
      if (const Value* entry = object.dict().find(name)) return *entry;
      return std::nullopt;
    case Kind::loop:
      return loop_attribute(workspace, object, name);
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return refuse_if(among(kNumberAttributes, name));
    case Kind::range:
    case Kind::view:
    case Kind::iterator:
      return refuse_if(among(kOtherAttributes, name));
    case Kind::callable:
      if (object.callable().kind != CallableKind::macro) return std::nullopt;
      if (name == "name" && object.callable().name.empty()) return Value();
      if (name == "name") return workspace.text(std::string(object.callable().name));
      return refuse_if(among(kMacroAttributes, name));
    default:
      return std::nullopt;
  }
}

// items[index] of Python for a length; nothing if there is no such item.
std::optional<std::size_t> position(std::int64_t index, std::size_t length) {
  const auto size = static_cast<std::int64_t>(length);
  if (index < -size || index >= size) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + size : index);
}

std::optional<Value> python_item(Workspace& workspace, Value object, Value key) {
  switch (object.kind()) {
    case Kind::dict:
      if (const Value* entry = object.dict().find(key)) return *entry;
      return std::nullopt;
    case Kind::list:
    case Kind::tuple:
    case Kind::range: {
      if (!key.is_integral()) return std::nullopt;
      const std::vector<Value>& items = object.sequence().items;
      const auto at = position(key.integer(), items.size());
      if (!at) return std::nullopt;
      return items[*at];
    }
    case Kind::string: {
      if (!key.is_integral()) return std::nullopt;
      const String& text = object.string();
      const auto at = position(key.integer(), text.length);
      if (!at) return std::nullopt;
      if (text.markup) workspace.unsupported("a part of escaped text");
      if (text.is_ascii()) return workspace.text(text.text.substr(*at, 1));
      workspace.charge_reading(text.text.size());
      return workspace.text(pick(text.text, static_cast<std::int64_t>(*at), 1, 1));
    }
    default:
      return std::nullopt;
  }
}

std::int64_t slice_bound(Workspace& workspace, Value value, std::int64_t length,
                         std::int64_t fallback, bool backwards) {
  if (value.is(Kind::none)) return fallback;
  if (!value.is_integral()) {
    workspace.fail(fmt::format("{} as a bound of a slice", describe(value)));
  }
  std::int64_t bound = value.integer();
  if (bound < 0) bound += length;
  const std::int64_t low = backwards ? -1 : 0;
  const std::int64_t high = backwards ? length - 1 : length;
  return std::clamp(bound, low, high);
}

}  // namespace

Value attribute(Workspace& workspace, Value object, std::string_view name) {
  workspace.charge_steps();
  if (object.is(Kind::undefined)) workspace.fail(object.undefined().what);
  if (const auto value = python_attribute(workspace, object, name)) return *value;
  if (object.is(Kind::dict)) {
    if (const Value* entry = object.dict().find(name)) return *entry;
  }
  return missing_attribute(workspace, object, name);
}

Value item(Workspace& workspace, Value object, Value key) {
  workspace.charge_reading(key.is(Kind::string) ? key.text().size() : 0);
  if (object.is(Kind::undefined)) workspace.fail(object.undefined().what);
  if (const auto value = python_item(workspace, object, key)) return *value;
  if (key.is(Kind::string)) {
    if (const auto value = python_attribute(workspace, object, key.text())) return *value;
    return missing_attribute(workspace, object, key.text());
  }
  if (key.is_number()) {
    return workspace.undefined(
        fmt::format("{} has no item {}", describe(object), to_text(workspace, key)));
  }
  return workspace.undefined(fmt::format("{} has no such item", describe(object)));
}

Value slice(Workspace& workspace, Value object, Value start, Value stop, Value step) {
  workspace.charge_steps();
  if (object.is(Kind::undefined)) workspace.fail(object.undefined().what);
  const bool is_text = object.is(Kind::string);
  if (!is_text && !object.is(Kind::list) && !object.is(Kind::tuple) && !object.is(Kind::range)) {
    workspace.fail(fmt::format("a slice of {}", describe(object)));
  }
  if (object.is(Kind::range)) workspace.unsupported("a slice of a range");
  if (is_text && object.string().markup) workspace.unsupported("a part of escaped text");
  if (!step.is(Kind::none) && !step.is_integral()) {
    workspace.fail(fmt::format("{} as the step of a slice", describe(step)));
  }
  const std::int64_t stride = step.is(Kind::none) ? 1 : step.integer();
  if (stride == 0) workspace.fail("a slice with step 0");
  const std::int64_t length = length_of(object);
  const bool backwards = stride < 0;
  const std::int64_t first =
      slice_bound(workspace, start, length, backwards ? length - 1 : 0, backwards);
  const std::int64_t end = slice_bound(workspace, stop, length, backwards ? -1 : length, backwards);
  const std::int64_t distance = backwards ? first - end : end - first;
  // Without negating the step, which may be the lowest of all integers.
  const std::uint64_t width =
      backwards ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
  const std::size_t count =
      distance <= 0 ? 0 : (static_cast<std::uint64_t>(distance) - 1) / width + 1;
  if (is_text) {
    const String& text = object.string();
    workspace.charge_reading(text.text.size());
    if (stride == 1 && text.is_ascii()) {
      return workspace.text(text.text.substr(static_cast<std::size_t>(first), count));
    }
    return workspace.text(pick(text.text, first, stride, count));
  }
  workspace.charge_bytes(count * sizeof(Value));
  const std::vector<Value>& items = object.sequence().items;
  std::vector<Value> picked;
  picked.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = i * width;
    const auto from = static_cast<std::uint64_t>(first);
    picked.push_back(items[backwards ? from - offset : from + offset]);
  }
  return object.is(Kind::list) ? workspace.list(std::move(picked))
                               : workspace.tuple(std::move(picked));
}

}  // namespace lockstep::jinja
