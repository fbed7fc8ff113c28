// See operators.h.
#include "runtime/chat/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/chat/jinja/formatting.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // integers up to here are exact as reals

std::string_view symbol(BinaryOp op) noexcept {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::subtract:
      return "-";
    case BinaryOp::multiply:
      return "*";
    case BinaryOp::divide:
      return "/";
    case BinaryOp::floor_divide:
      return "//";
    case BinaryOp::modulo:
      return "%";
    case BinaryOp::power:
      return "**";
  }
  return "?";
}

void require_defined(Workspace& workspace, Value value) {
  if (value.is(Kind::undefined)) workspace.fail(value.undefined().what);
}

[[noreturn]] void overflow(Workspace& workspace) {
  workspace.unsupported("an integer of more than 64 bits");
}

[[noreturn]] void zero(Workspace& workspace) { workspace.fail("a division by zero"); }

Value integer_power(Workspace& workspace, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) zero(workspace);
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (exponent > 0 && (base == 0 || base == 1)) return Value(base);
  if (base == -1) return Value(std::int64_t{exponent % 2 == 0 ? 1 : -1});
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {  // of at most 63 rounds, as |base| >= 2
    if (__builtin_mul_overflow(result, base, &result)) overflow(workspace);
  }
  return Value(result);
}

// Towards minus infinity, as Python divides.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_binary(Workspace& workspace, BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool wide = false;
  switch (op) {
    case BinaryOp::add:
      wide = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::subtract:
      wide = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::multiply:
      wide = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::divide:
      if (b == 0) zero(workspace);
      // Beyond, Python rounds the exact quotient once, and this would round three times.
      if (a > kExact || a < -kExact || b > kExact || b < -kExact) overflow(workspace);
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::floor_divide:
    case BinaryOp::modulo:
      if (b == 0) zero(workspace);
      if (b == -1) {  // the one divisor that can overflow
        if (op == BinaryOp::modulo) return Value(std::int64_t{0});
        wide = __builtin_sub_overflow(std::int64_t{0}, a, &result);
        break;
      }
      result = floor_quotient(a, b);
      if (op == BinaryOp::modulo) result = a - result * b;
      break;
    case BinaryOp::power:
      return integer_power(workspace, a, b);
  }
  if (wide) overflow(workspace);
  return Value(result);
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double real_floor_quotient(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value real_power(Workspace& workspace, double a, double b) {
  if (a == 0 && b < 0) zero(workspace);
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    workspace.unsupported("a complex number");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    workspace.fail("a number too large for a float");
  }
  return Value(result);
}

Value real_binary(Workspace& workspace, BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return Value(a + b);
    case BinaryOp::subtract:
      return Value(a - b);
    case BinaryOp::multiply:
      return Value(a * b);
    case BinaryOp::divide:
      if (b == 0) zero(workspace);
      return Value(a / b);
    case BinaryOp::floor_divide:
      if (b == 0) zero(workspace);
      return Value(real_floor_quotient(a, b));
    case BinaryOp::modulo:
      if (b == 0) zero(workspace);
      return Value(floor_modulo(a, b));
    case BinaryOp::power:
      return real_power(workspace, a, b);
  }
  return Value();
}

// Of a text added to one that is escaped, the other is escaped first.
Value add_texts(Workspace& workspace, const String& a, const String& b) {
  const std::uint64_t bytes = std::uint64_t{a.text.size()} + b.text.size();
  workspace.check_text(bytes);
  workspace.charge_bytes(bytes);
  if (!a.markup && !b.markup) return workspace.text(a.text + b.text);
  return workspace.text(
      (a.markup ? a.text : escape_html(a.text)) + (b.markup ? b.text : escape_html(b.text)), true);
}

Value add_lists(Workspace& workspace, Value a, Value b) {
  const std::vector<Value>& x = a.sequence().items;
  const std::vector<Value>& y = b.sequence().items;
  workspace.charge_bytes((x.size() + y.size()) * sizeof(Value));
  std::vector<Value> items(x);
  items.insert(items.end(), y.begin(), y.end());
  return a.is(Kind::list) ? workspace.list(std::move(items)) : workspace.tuple(std::move(items));
}

Value repeat(Workspace& workspace, Value value, std::int64_t times) {
  const auto count = static_cast<std::uint64_t>(times < 0 ? 0 : times);
  const std::uint64_t size =
      value.is(Kind::string) ? value.text().size() : value.sequence().items.size() * sizeof(Value);
  // Divided, since the product may wrap.
  if (size > 0 && count > workspace.limits().bytes / size) workspace.check_text(~std::uint64_t{0});
  if (value.is(Kind::string)) workspace.check_text(size * count);
  workspace.charge_bytes(size * count);
  if (value.is(Kind::string)) {
    if (value.string().markup) workspace.unsupported("escaped text that is repeated");
    std::string out;
    out.reserve(size * count);
    if (size > 0) {
      for (std::uint64_t i = 0; i < count; ++i) out += value.text();
    }
    return workspace.text(std::move(out));
  }
  const std::vector<Value>& items = value.sequence().items;
  std::vector<Value> out;
  if (!items.empty()) {
    out.reserve(items.size() * count);
    for (std::uint64_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  return value.is(Kind::list) ? workspace.list(std::move(out)) : workspace.tuple(std::move(out));
}

bool can_repeat(Value value) noexcept {
  return value.is(Kind::string) || value.is(Kind::list) || value.is(Kind::tuple);
}

bool equal_sequences(Workspace& workspace, const Sequence& a, const Sequence& b) {
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(workspace, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Workspace& workspace, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (!other || !equal(workspace, value, *other)) return false;
  }
  return true;
}

}  // namespace

Value binary(Workspace& workspace, BinaryOp op, Value left, Value right) {
  workspace.charge_steps();
  // A format string is asked first, and takes undefined values.
  if (op == BinaryOp::modulo && left.is(Kind::string)) {
    return format_percent(workspace, left, right);
  }
  require_defined(workspace, left);
  require_defined(workspace, right);
  if (left.is_integral() && right.is_integral()) {
    return integer_binary(workspace, op, left.integer(), right.integer());
  }
  if (left.is_number() && right.is_number()) {
    return real_binary(workspace, op, left.real(), right.real());
  }
  const bool same = left.kind() == right.kind();
  if (op == BinaryOp::add && same) {
    if (left.is(Kind::string)) return add_texts(workspace, left.string(), right.string());
    if (left.is(Kind::list) || left.is(Kind::tuple)) return add_lists(workspace, left, right);
  }
  if (op == BinaryOp::multiply) {
    if (can_repeat(left) && right.is_integral()) return repeat(workspace, left, right.integer());
    if (can_repeat(right) && left.is_integral()) return repeat(workspace, right, left.integer());
  }
  workspace.fail(fmt::format("{} {} {}", describe(left), symbol(op), describe(right)));
}

Value negate(Workspace& workspace, Value value) {
  require_defined(workspace, value);
  if (value.is_integral()) {
    return integer_binary(workspace, BinaryOp::subtract, 0, value.integer());
  }
  if (value.is(Kind::real)) return Value(-value.real());
  workspace.fail(fmt::format("the negative of {}", describe(value)));
}

Value plus(Workspace& workspace, Value value) {
  require_defined(workspace, value);
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::real)) return value;
  workspace.fail(fmt::format("+ before {}", describe(value)));
}

bool equal(Workspace& workspace, Value left, Value right) {
  workspace.charge_steps();
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      if (left.text().size() == right.text().size()) workspace.charge_reading(left.text().size());
      return left.text() == right.text();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return equal_sequences(workspace, left.sequence(), right.sequence());
    case Kind::dict:
      return equal_dicts(workspace, left.dict(), right.dict());
    case Kind::view:
    case Kind::callable:
      if (left.address() == right.address()) return true;
      workspace.unsupported(fmt::format("the comparison of {} with another", describe(left)));
    default:
      return left.address() == right.address();
  }
}

bool is_less(Workspace& workspace, Value left, Value right) {
  workspace.charge_steps();
  require_defined(workspace, left);
  require_defined(workspace, right);
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == -1;
  if (left.is(Kind::string) && right.is(Kind::string)) {
    workspace.charge_reading(std::min(left.text().size(), right.text().size()));
    return left.text() < right.text();  // bytes of UTF-8 are ordered as code points are
  }
  const bool lists = left.is(Kind::list) && right.is(Kind::list);
  const bool tuples = left.is(Kind::tuple) && right.is(Kind::tuple);
  if (!lists && !tuples) {
    workspace.fail(fmt::format("{} and {} have no order", describe(left), describe(right)));
  }
  const std::vector<Value>& a = left.sequence().items;
  const std::vector<Value>& b = right.sequence().items;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!equal(workspace, a[i], b[i])) return is_less(workspace, a[i], b[i]);
  }
  return a.size() < b.size();
}

bool contains(Workspace& workspace, Value container, Value item) {
  workspace.charge_steps();
  switch (container.kind()) {
    case Kind::undefined:
      return false;
    case Kind::string:
      if (!item.is(Kind::string)) {
        workspace.fail(fmt::format("'in' looks for {} in a string", describe(item)));
      }
      workspace.charge_reading(container.text().size() + item.text().size());
      return find_part(container.text(), item.text()) != std::string_view::npos;
    case Kind::dict:
      if (!is_key(item)) {
        if (item.is(Kind::list) || item.is(Kind::dict) || item.is(Kind::view)) {
          workspace.fail(fmt::format("'in' looks for {} in a dict", describe(item)));
        }
        return false;
      }
      if (item.is(Kind::string)) workspace.charge_reading(item.text().size());
      return container.dict().find(item) != nullptr;
    case Kind::iterator: {
      Cursor& cursor = container.cursor();
      while (cursor.next < cursor.items->items.size()) {
        if (equal(workspace, cursor.items->items[cursor.next++], item)) return true;
      }
      return false;
    }
    default:
      break;
  }
  for (const Value candidate : items_of(workspace, container)) {
    if (equal(workspace, candidate, item)) return true;
  }
  return false;
}

bool compare(Workspace& workspace, CompareOp op, Value left, Value right) {
  switch (op) {
    case CompareOp::equal:
      return equal(workspace, left, right);
    case CompareOp::unequal:
      return !equal(workspace, left, right);
    case CompareOp::less:
      return is_less(workspace, left, right);
    case CompareOp::greater:
      return is_less(workspace, right, left);
    case CompareOp::less_equal:
    case CompareOp::greater_equal: {
      // Not the negation of the opposite: NaN is neither.
      const bool swapped = op == CompareOp::greater_equal;
      const Value a = swapped ? right : left;
      const Value b = swapped ? left : right;
      if (a.is_number() && b.is_number()) {
        const int order = compare_numbers(a, b);
        return order == -1 || order == 0;
      }
      return is_less(workspace, a, b) || equal(workspace, a, b);
    }
    case CompareOp::in:
      return contains(workspace, right, left);
    case CompareOp::not_in:
      return !contains(workspace, right, left);
  }
  return false;
}

std::vector<Value> items_of(Workspace& workspace, Value value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::undefined:
      break;
    case Kind::string: {
      const std::string& text = value.string().text;
      workspace.charge_bytes(value.string().length * sizeof(Value));
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        next_character(text, at);
        items.push_back(workspace.text(text.substr(begin, at - begin)));
      }
      break;
    }
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      workspace.charge_bytes(value.sequence().items.size() * sizeof(Value));
      items = value.sequence().items;
      break;
    case Kind::iterator: {
      Cursor& cursor = value.cursor();
      const std::vector<Value>& all = cursor.items->items;
      items.assign(all.begin() + static_cast<std::ptrdiff_t>(cursor.next), all.end());
      workspace.charge_bytes(items.size() * sizeof(Value));
      cursor.next = all.size();
      break;
    }
    case Kind::dict:
      workspace.charge_bytes(value.dict().entries.size() * sizeof(Value));
      for (const auto& [key, entry] : value.dict().entries) items.push_back(key);
      break;
    case Kind::loop:
      workspace.unsupported("a walk through the variable 'loop'");
    default:
      workspace.fail(fmt::format("{} cannot be iterated over", describe(value)));
  }
  workspace.charge_steps(items.size());
  return items;
}

}  // namespace lockstep::jinja
