// See value.h.
#include "runtime/chat/jinja/value.h"

#include <cmath>
#include <functional>

namespace lockstep::jinja {
namespace {

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
constexpr double kTwoTo63 = 9223372036854775808.0;

bool same_key(Value a, Value b) noexcept {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  return a.is(Kind::string) ? a.text() == b.text() : true;  // none, undefined
}

std::size_t hash_of(Value key) noexcept {
  if (key.is(Kind::string)) return std::hash<std::string_view>{}(key.text());
  // Equal numbers must share a hash, whatever their kind.
  if (key.is_number()) return std::hash<double>{}(key.real());
  return static_cast<std::size_t>(key.kind());
}

int compare_integer_with_real(std::int64_t a, double b) noexcept {
  if (std::isnan(b)) return 2;
  if (b >= kTwoTo63) return -1;
  if (b < -kTwoTo63) return 1;
  const double whole = std::trunc(b);
  const auto integer = static_cast<std::int64_t>(whole);
  if (a != integer) return a < integer ? -1 : 1;
  return b > whole ? -1 : b < whole ? 1 : 0;
}

}  // namespace

std::string_view Value::text() const noexcept { return string().text; }

int compare_numbers(Value a, Value b) noexcept {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
  }
  if (a.is_integral()) return compare_integer_with_real(a.integer(), b.real());
  if (b.is_integral()) {
    const int order = compare_integer_with_real(b.integer(), a.real());
    return order == 2 ? 2 : -order;
  }
  if (std::isnan(a.real()) || std::isnan(b.real())) return 2;
  return a.real() < b.real() ? -1 : a.real() > b.real() ? 1 : 0;
}

bool is_key(Value value) noexcept {
  return value.is(Kind::string) || value.is_number() || value.is(Kind::none) ||
         value.is(Kind::undefined);
}

std::size_t Dict::position(Value key) const {
  if (entries.size() <= kSmall) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (same_key(entries[i].first, key)) return i;
    }
    return kAbsent;
  }
  const auto [begin, end] = by_hash_.equal_range(hash_of(key));
  for (auto it = begin; it != end; ++it) {
    if (same_key(entries[it->second].first, key)) return it->second;
  }
  return kAbsent;
}

const Value* Dict::find(Value key) const {
  if (!is_key(key)) return nullptr;
  const std::size_t i = position(key);
  return i == kAbsent ? nullptr : &entries[i].second;
}

const Value* Dict::find(std::string_view key) const {
  const String text{std::string(key), 0, false};
  return find(Value(&text));
}

void Dict::set(Value key, Value value) {
  const std::size_t i = position(key);
  if (i != kAbsent) {
    entries[i].second = value;  // the key stays as it was first written
    return;
  }
  entries.emplace_back(key, value);
  if (entries.size() < kSmall + 1) return;
  if (entries.size() == kSmall + 1) {
    for (std::size_t k = 0; k < entries.size(); ++k) by_hash_.emplace(hash_of(entries[k].first), k);
  } else {
    by_hash_.emplace(hash_of(key), entries.size() - 1);
  }
}

bool is_true(Value value) noexcept {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean();
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::iterator:
    case Kind::name_space:
    case Kind::loop:
    case Kind::callable:
      return true;
    default:
      return length_of(value) != 0;
  }
}

std::int64_t length_of(Value value) noexcept {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<std::int64_t>(value.string().length);
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return static_cast<std::int64_t>(value.sequence().items.size());
    case Kind::dict:
      return static_cast<std::int64_t>(value.dict().entries.size());
    default:
      return -1;
  }
}

std::string_view describe(Value value) noexcept {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
      return "an undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "a bool";
    case Kind::integer:
      return "an int";
    case Kind::real:
      return "a float";
    case Kind::string:
      return "a string";
    case Kind::list:
      return "a list";
    case Kind::tuple:
      return "a tuple";
    case Kind::range:
      return "a range";
    case Kind::view:
      return "a view of a dict";
    case Kind::iterator:
      return "an iterator";
    case Kind::dict:
      return "a dict";
    case Kind::name_space:
      return "a namespace";
    case Kind::loop:
      return "a loop";
    case Kind::callable:
      return "a function";
  }
  return "a value";
}

}  // namespace lockstep::jinja
