// Filters that walk through items. What Jinja computes lazily is computed here at once, but is an
// iterator all the same: true, without a length, and empty after the first walk.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "runtime/chat/jinja/access.h"
#include "runtime/chat/jinja/filter_lists.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/printable.h"

namespace lockstep::jinja {
namespace {

// Items named by a path: "function.name", "0.text", 1.
class Getter {
 public:
  Getter(Workspace& workspace, Value path, Value fallback = Value())
      : workspace_(workspace), fallback_(fallback) {
    if (path.is(Kind::none)) return;
    if (!path.is(Kind::string)) {
      parts_.push_back(path);
      return;
    }
    for (const std::string_view part : split_at(workspace_, path.text(), ".", -1, false)) {
      std::int64_t index = 0;
      const bool digits =
          !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      if (digits &&
          std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc{}) {
        parts_.emplace_back(index);
      } else {
        parts_.push_back(workspace_.text(std::string(part)));
      }
    }
  }

  Value operator()(Value value) const {
    for (const Value part : parts_) {
      value = item(workspace_, value, part);
      if (value.is(Kind::undefined) && !fallback_.is(Kind::none)) value = fallback_;
    }
    return value;
  }

 private:
  Workspace& workspace_;
  Value fallback_;
  std::vector<Value> parts_;
};

Value filter_list(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'list'", arguments, {});
  return workspace.list(items_of(workspace, value));
}

Value filter_first(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'first'", arguments, {});
  if (value.is(Kind::iterator)) {  // takes one item only
    Cursor& cursor = value.cursor();
    if (cursor.next < cursor.items->items.size()) return cursor.items->items[cursor.next++];
  } else if (const auto items = items_of(workspace, value); !items.empty()) {
    return items.front();
  }
  return workspace.undefined("there is no first item");
}

Value filter_last(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'last'", arguments, {});
  if (value.is(Kind::iterator)) workspace.fail("the filter 'last' on an iterator");
  const std::vector<Value> items = items_of(workspace, value);
  return items.empty() ? workspace.undefined("there is no last item") : items.back();
}

Value filter_reverse(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'reverse'", arguments, {});
  if (value.is(Kind::string)) {
    return slice(workspace, value, Value(), Value(), Value(std::int64_t{-1}));
  }
  std::vector<Value> items = items_of(workspace, value);
  std::reverse(items.begin(), items.end());
  return value.is(Kind::iterator) ? workspace.list(std::move(items))
                                  : workspace.iterator(std::move(items));
}

Value filter_join(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'join'", arguments, {"d", "attribute"});
  const std::string separator = bound.has(0) ? to_text(workspace, bound.get(0)) : std::string();
  const Getter get(workspace, bound.get(1));
  std::string out;
  bool first = true;
  for (const Value item : items_of(workspace, value)) {
    workspace.check_text(out.size() + separator.size());
    if (!first) out += separator;
    append_text(workspace, get(item), out);
    first = false;
  }
  return workspace.text(std::move(out));
}

Value filter_items(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'items'", arguments, {});
  if (value.is(Kind::undefined)) return workspace.iterator({});
  if (!value.is(Kind::dict)) {
    workspace.fail(fmt::format("the filter 'items' on {}", describe(value)));
  }
  std::vector<Value> pairs;
  for (const auto& [key, entry] : value.dict().entries) {
    pairs.push_back(workspace.tuple({key, entry}));
  }
  return workspace.iterator(std::move(pairs));
}

// Sorted by keys computed once; stable, also in reverse.
std::vector<Value> sorted(Workspace& workspace, const std::vector<Value>& items,
                          std::vector<Value> keys, bool reverse) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? is_less(workspace, keys[b], keys[a]) : is_less(workspace, keys[a], keys[b]);
  });
  std::vector<Value> result;
  result.reserve(items.size());
  for (const std::size_t i : order) result.push_back(items[i]);
  return result;
}

Value filter_dictsort(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'dictsort'", arguments,
                    {"case_sensitive", "by", "reverse"});
  const std::string_view by = bound.text(1, "key");
  if (by != "key" && by != "value") {
    workspace.fail("the filter 'dictsort' sorts by 'key' or 'value'");
  }
  if (value.is(Kind::undefined)) workspace.fail(value.undefined().what);
  if (!value.is(Kind::dict)) {
    workspace.fail(fmt::format("the filter 'dictsort' on {}", describe(value)));
  }
  std::vector<Value> pairs, keys;
  for (const auto& [key, entry] : value.dict().entries) {
    pairs.push_back(workspace.tuple({key, entry}));
    const Value sort_key = by == "key" ? key : entry;
    keys.push_back(bound.truth(0, false) ? sort_key : without_case(workspace, sort_key));
  }
  return workspace.list(sorted(workspace, pairs, std::move(keys), bound.truth(2, false)));
}

// The attributes "a,b.c" of an item as a list; one path is a list of one.
Value sort_key(Workspace& workspace, const std::vector<Getter>& getters, Value value, bool cased) {
  std::vector<Value> key;
  for (const Getter& get : getters) {
    key.push_back(cased ? get(value) : without_case(workspace, get(value)));
  }
  return workspace.list(std::move(key));
}

Value filter_sort(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'sort'", arguments,
                    {"reverse", "case_sensitive", "attribute"});
  std::vector<Getter> getters;
  if (const Value path = bound.get(2); path.is(Kind::string)) {
    for (const std::string_view part : split_at(workspace, path.text(), ",", -1, false)) {
      getters.emplace_back(workspace, workspace.text(std::string(part)));
    }
  } else {
    getters.emplace_back(workspace, path);
  }
  const std::vector<Value> items = items_of(workspace, value);
  std::vector<Value> keys;
  for (const Value item : items) {
    keys.push_back(sort_key(workspace, getters, item, bound.truth(1, false)));
  }
  return workspace.list(sorted(workspace, items, std::move(keys), bound.truth(0, false)));
}

Value filter_unique(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'unique'", arguments, {"case_sensitive", "attribute"});
  const Getter get(workspace, bound.get(1));
  Dict seen;
  std::vector<Value> kept;
  for (const Value item : items_of(workspace, value)) {
    Value key = get(item);
    if (!bound.truth(0, false)) key = without_case(workspace, key);
    if (is_key(key) && seen.find(key)) continue;
    workspace.set(seen, key, Value());
    kept.push_back(item);
  }
  return workspace.iterator(std::move(kept));
}

Value extreme(Workspace& workspace, Value value, const Bound& bound, bool largest) {
  const Getter get(workspace, bound.get(1));
  const auto key_of = [&](Value item) {
    return bound.truth(0, false) ? get(item) : without_case(workspace, get(item));
  };
  const std::vector<Value> items = items_of(workspace, value);
  if (items.empty()) return workspace.undefined("there is no item to choose from");
  Value best = items.front(), best_key = key_of(best);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Value key = key_of(items[i]);
    const bool better =
        largest ? is_less(workspace, best_key, key) : is_less(workspace, key, best_key);
    if (better) best = items[i], best_key = key;
  }
  return best;
}

Value filter_min(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'min'", arguments, {"case_sensitive", "attribute"});
  return extreme(workspace, value, bound, false);
}

Value filter_max(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'max'", arguments, {"case_sensitive", "attribute"});
  return extreme(workspace, value, bound, true);
}

Value filter_sum(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'sum'", arguments, {"attribute", "start"});
  const Getter get(workspace, bound.get(0));
  Value sum = bound.get(1, Value(std::int64_t{0}));
  if (sum.is(Kind::string)) workspace.fail("the filter 'sum' adds numbers, not strings");
  for (const Value item : items_of(workspace, value)) {
    sum = binary(workspace, BinaryOp::add, sum, get(item));
  }
  return sum;
}

Value filter_batch(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'batch'", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = bound.integer(0, 0);
  if (size < 1) workspace.unsupported("the filter 'batch' with less than one item a line");
  const Value fill = bound.get(1);
  std::vector<Value> lines, line;
  for (const Value item : items_of(workspace, value)) {
    if (static_cast<std::int64_t>(line.size()) == size) {
      lines.push_back(workspace.list(std::move(line)));
      line = {};
    }
    line.push_back(item);
  }
  if (!line.empty()) {
    if (!fill.is(Kind::none)) {
      workspace.charge_steps(static_cast<std::uint64_t>(size));
      workspace.charge_bytes(static_cast<std::uint64_t>(size) * sizeof(Value));
      line.resize(static_cast<std::size_t>(size), fill);
    }
    lines.push_back(workspace.list(std::move(line)));
  }
  return workspace.iterator(std::move(lines));
}

Value filter_slice(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'slice'", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t slices = bound.integer(0, 0);
  if (slices < 1) workspace.unsupported("the filter 'slice' into less than one part");
  const std::vector<Value> items = items_of(workspace, value);
  workspace.charge_steps(static_cast<std::uint64_t>(slices));
  const std::size_t size = items.size() / static_cast<std::size_t>(slices);
  const std::size_t longer = items.size() % static_cast<std::size_t>(slices);
  std::vector<Value> parts;
  std::size_t at = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(slices); ++i) {
    const std::size_t count = size + (i < longer ? 1 : 0);
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<Value> part(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (!bound.get(1).is(Kind::none) && i >= longer) part.push_back(bound.get(1));
    parts.push_back(workspace.list(std::move(part)));
    at += count;
  }
  return workspace.iterator(std::move(parts));
}

// The filter or test that map, select and the like apply, by the name in an argument.
template <typename Function>
Function named(Workspace& workspace, Value name, Function (*find)(std::string_view) noexcept,
               std::string_view what) {
  if (!name.is(Kind::string)) {
    workspace.fail(fmt::format("the name of a {} is {}", what, describe(name)));
  }
  const Function function = find(name.text());
  if (!function) workspace.unsupported(fmt::format("the {} '{}'", what, printable(name.text())));
  return function;
}

Arguments without_first(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

Value filter_map(Workspace& workspace, Value value, const Arguments& arguments) {
  if (!is_true(value)) return workspace.iterator({});
  std::vector<Value> results;
  if (arguments.positional.empty()) {
    const Bound bound(workspace, "the filter 'map'", arguments, {"attribute", "default"}, 1);
    const Getter get(workspace, bound.get(0), bound.get(1));
    for (const Value item : items_of(workspace, value)) results.push_back(get(item));
    return workspace.iterator(std::move(results));
  }
  const Filter filter = named<Filter>(workspace, arguments.positional[0], find_filter, "filter");
  const Arguments rest = without_first(arguments, 1);
  for (const Value item : items_of(workspace, value)) {
    results.push_back(filter(workspace, item, rest));
  }
  return workspace.iterator(std::move(results));
}

Value chosen(Workspace& workspace, Value value, const Arguments& arguments, bool by_attribute,
             bool wanted) {
  if (!is_true(value)) return workspace.iterator({});
  const std::size_t test_at = by_attribute ? 1 : 0;
  if (arguments.positional.size() < test_at) workspace.fail("the name of an attribute is missing");
  const Getter get(workspace, by_attribute ? arguments.positional[0] : Value());
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > test_at) {
    test = named<Test>(workspace, arguments.positional[test_at], find_test, "test");
    rest = without_first(arguments, test_at + 1);
  }
  std::vector<Value> kept;
  for (const Value item : items_of(workspace, value)) {
    const Value looked_at = get(item);
    const bool holds = test ? test(workspace, looked_at, rest) : is_true(looked_at);
    if (holds == wanted) kept.push_back(item);
  }
  return workspace.iterator(std::move(kept));
}

Value filter_select(Workspace& workspace, Value value, const Arguments& arguments) {
  return chosen(workspace, value, arguments, false, true);
}
Value filter_reject(Workspace& workspace, Value value, const Arguments& arguments) {
  return chosen(workspace, value, arguments, false, false);
}
Value filter_selectattr(Workspace& workspace, Value value, const Arguments& arguments) {
  return chosen(workspace, value, arguments, true, true);
}
Value filter_rejectattr(Workspace& workspace, Value value, const Arguments& arguments) {
  return chosen(workspace, value, arguments, true, false);
}

}  // namespace

std::span<const NamedFilter> sequence_filters() noexcept {
  static constexpr NamedFilter kFilters[] = {
      {"batch", filter_batch},     {"dictsort", filter_dictsort}, {"first", filter_first},
      {"items", filter_items},     {"join", filter_join},         {"last", filter_last},
      {"list", filter_list},       {"map", filter_map},           {"max", filter_max},
      {"min", filter_min},         {"reject", filter_reject},     {"rejectattr", filter_rejectattr},
      {"reverse", filter_reverse}, {"select", filter_select},     {"selectattr", filter_selectattr},
      {"slice", filter_slice},     {"sort", filter_sort},         {"sum", filter_sum},
      {"unique", filter_unique},
  };
  return kFilters;
}

}  // namespace lockstep::jinja
