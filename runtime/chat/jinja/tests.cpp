// Jinja's tests: what stands behind `is`.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "runtime/chat/jinja/filters.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

template <bool (*kHolds)(Value)>
bool plain(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "a test", arguments, {});
  return kHolds(value);
}

bool is_defined(Value value) { return !value.is(Kind::undefined); }
bool is_undefined(Value value) { return value.is(Kind::undefined); }
bool is_none(Value value) { return value.is(Kind::none); }
bool is_boolean(Value value) { return value.is(Kind::boolean); }
bool is_false(Value value) { return value.is(Kind::boolean) && !value.boolean(); }
bool is_true_itself(Value value) { return value.is(Kind::boolean) && value.boolean(); }
bool is_integer(Value value) { return value.is(Kind::integer); }
bool is_float(Value value) { return value.is(Kind::real); }
bool is_number(Value value) { return value.is_number(); }
bool is_string(Value value) { return value.is(Kind::string); }
bool is_mapping(Value value) { return value.is(Kind::dict); }
bool is_escaped(Value value) { return value.is(Kind::string) && value.string().markup; }

// What has a length and can be asked for items; in Jinja that includes undefined.
bool is_sequence(Value value) {
  return value.is(Kind::undefined) || value.is(Kind::string) || value.is(Kind::list) ||
         value.is(Kind::tuple) || value.is(Kind::range) || value.is(Kind::dict);
}
bool is_iterable(Value value) {
  return is_sequence(value) || value.is(Kind::view) || value.is(Kind::iterator) ||
         value.is(Kind::loop);
}
bool is_callable(Value value) {
  return value.is(Kind::callable) || value.is(Kind::undefined) || value.is(Kind::loop);
}

// islower() and isupper(): at least one letter, and none of the other case.
bool has_case(Workspace& workspace, Value value, const Arguments& arguments, bool lower) {
  const Bound none(workspace, "a test", arguments, {});
  const std::string text = to_text(workspace, value);
  if (!is_ascii(text)) workspace.unsupported("the test of case for text outside ASCII");
  const auto within = [](char low, char high) {
    return [low, high](char c) { return c >= low && c <= high; };
  };
  const bool any_lower = std::any_of(text.begin(), text.end(), within('a', 'z'));
  const bool any_upper = std::any_of(text.begin(), text.end(), within('A', 'Z'));
  return lower ? any_lower && !any_upper : any_upper && !any_lower;
}

bool test_lower(Workspace& workspace, Value value, const Arguments& arguments) {
  return has_case(workspace, value, arguments, true);
}
bool test_upper(Workspace& workspace, Value value, const Arguments& arguments) {
  return has_case(workspace, value, arguments, false);
}

bool rest_is(Workspace& workspace, Value value, Value divisor, std::int64_t rest) {
  return equal(workspace, binary(workspace, BinaryOp::modulo, value, divisor), Value(rest));
}

bool test_odd(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the test 'odd'", arguments, {});
  return rest_is(workspace, value, Value(std::int64_t{2}), 1);
}
bool test_even(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the test 'even'", arguments, {});
  return rest_is(workspace, value, Value(std::int64_t{2}), 0);
}
bool test_divisibleby(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the test 'divisibleby'", arguments, {"num"}, 1);
  return rest_is(workspace, value, bound.get(0), 0);
}

bool test_sameas(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the test 'sameas'", arguments, {"other"}, 1);
  const Value other = bound.get(0);
  if (value.kind() != other.kind()) return false;
  if (value.is(Kind::none)) return true;
  if (value.is(Kind::boolean)) return value.boolean() == other.boolean();
  const bool chance = value.is_number() || value.is(Kind::string) || value.is(Kind::tuple) ||
                      value.is(Kind::undefined) || value.is(Kind::callable);
  // Whether equal ones are the same object is Python's affair.
  if (chance) workspace.unsupported(fmt::format("the test 'sameas' on {}", describe(value)));
  return value.address() == other.address();
}

bool test_in(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the test 'in'", arguments, {"seq"}, 1);
  return contains(workspace, bound.get(0), value);
}

// Whether there is a filter or test of the name that `value` is; other keys name none.
template <typename Function>
bool named(Workspace& workspace, Value value, const Arguments& arguments, Function exists) {
  const Bound none(workspace, "a test", arguments, {});
  if (value.is(Kind::string)) return exists(value.text());
  if (!is_key(value)) workspace.fail(fmt::format("{} as a name", describe(value)));
  return false;
}

bool test_filter(Workspace& workspace, Value value, const Arguments& arguments) {
  return named(workspace, value, arguments, [&](std::string_view name) {
    // A template that asks is about to use it.
    if (is_other_jinja_filter(name)) workspace.unsupported(fmt::format("the filter '{}'", name));
    return find_filter(name) != nullptr;
  });
}
bool test_test(Workspace& workspace, Value value, const Arguments& arguments) {
  return named(workspace, value, arguments,
               [](std::string_view name) { return find_test(name) != nullptr; });
}

template <CompareOp kOp>
bool compared(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "a test that compares", arguments, {"other"}, 1);
  return compare(workspace, kOp, value, bound.get(0));
}

constexpr NamedTest kTests[] = {
    {"!=", compared<CompareOp::unequal>},
    {"<", compared<CompareOp::less>},
    {"<=", compared<CompareOp::less_equal>},
    {"==", compared<CompareOp::equal>},
    {">", compared<CompareOp::greater>},
    {">=", compared<CompareOp::greater_equal>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", test_divisibleby},
    {"eq", compared<CompareOp::equal>},
    {"equalto", compared<CompareOp::equal>},
    {"escaped", plain<is_escaped>},
    {"even", test_even},
    {"false", plain<is_false>},
    {"filter", test_filter},
    {"float", plain<is_float>},
    {"ge", compared<CompareOp::greater_equal>},
    {"greaterthan", compared<CompareOp::greater>},
    {"gt", compared<CompareOp::greater>},
    {"in", test_in},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compared<CompareOp::less_equal>},
    {"lessthan", compared<CompareOp::less>},
    {"lower", test_lower},
    {"lt", compared<CompareOp::less>},
    {"mapping", plain<is_mapping>},
    {"ne", compared<CompareOp::unequal>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", test_odd},
    {"sameas", test_sameas},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", test_test},
    {"true", plain<is_true_itself>},
    {"undefined", plain<is_undefined>},
    {"upper", test_upper},
};

}  // namespace

Test find_test(std::string_view name) noexcept {
  const auto* at = std::find_if(std::begin(kTests), std::end(kTests),
                                [&](const NamedTest& test) { return test.name == name; });
  return at == std::end(kTests) ? nullptr : at->function;
}

}  // namespace lockstep::jinja
