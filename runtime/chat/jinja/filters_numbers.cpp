// Filters that give numbers, and `default`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/chat/jinja/filter_lists.h"
#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/numbers.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string_view stripped_ascii(Workspace& workspace, std::string_view text) {
  workspace.charge_reading(text.size());
  if (!is_ascii(text)) workspace.unsupported("a number read from text outside ASCII");
  return strip(text, std::nullopt, Side::both);
}

std::string lower_ascii(std::string_view text) { return *lower(text); }

}  // namespace

std::optional<std::string> plain_digits(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_digit(text[i])) {
      digits += text[i];
    } else if (text[i] != '_' || i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  if (digits.empty()) return std::nullopt;
  return digits;
}

std::optional<std::int64_t> parse_integer(Workspace& workspace, std::string_view text) {
  text = stripped_ascii(workspace, text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  auto digits = plain_digits(text);
  if (!digits) return std::nullopt;
  if (negative) digits->insert(digits->begin(), '-');
  std::int64_t value = 0;
  const char* end = digits->data() + digits->size();
  if (std::from_chars(digits->data(), end, value).ec != std::errc{}) {
    workspace.unsupported("an integer of more than 64 bits");
  }
  return value;
}

std::optional<double> parse_real(Workspace& workspace, std::string_view text) {
  text = stripped_ascii(workspace, text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string name = lower_ascii(text);
  const double sign = negative ? -1.0 : 1.0;
  if (name == "inf" || name == "infinity") return sign * HUGE_VAL;
  if (name == "nan") return std::nan("");
  // [digits][.digits][e[sign]digits], with a digit somewhere before the e.
  const std::size_t mark = name.find('e');
  const std::string_view mantissa = std::string_view(name).substr(0, mark);
  const std::size_t point = mantissa.find('.');
  if (mantissa.empty() || mantissa == ".") return std::nullopt;
  std::string plain;
  for (const std::string_view part :
       {mantissa.substr(0, point),
        point == std::string_view::npos ? std::string_view{} : mantissa.substr(point + 1)}) {
    const auto digits = part.empty() ? std::optional<std::string>("0") : plain_digits(part);
    if (!digits) return std::nullopt;
    plain += (plain.empty() ? "" : ".") + *digits;
  }
  if (mark != std::string::npos) {
    std::string_view exponent = std::string_view(name).substr(mark + 1);
    const bool down = exponent.starts_with('-');
    if (down || exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto digits = plain_digits(exponent);
    if (!digits) return std::nullopt;
    plain += (down ? "e-" : "e+") + *digits;
  }
  double value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    workspace.unsupported("a number beyond the range of a float");
  }
  return sign * value;
}

namespace {

Value truncated(Workspace& workspace, double value, Value fallback) {
  if (std::isnan(value)) return fallback;
  if (std::isinf(value)) workspace.fail("an infinite number as an integer");
  if (!(std::abs(value) < 9.2e18)) workspace.unsupported("an integer of more than 64 bits");
  return Value(static_cast<std::int64_t>(value));
}

Value filter_int(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'int'", arguments, {"default", "base"});
  if (bound.integer(1, 10) != 10) workspace.unsupported("the filter 'int' with another base");
  const Value fallback = bound.get(0, Value(std::int64_t{0}));
  if (value.is(Kind::undefined)) workspace.fail(value.undefined().what);
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::real)) return truncated(workspace, value.real(), fallback);
  if (!value.is(Kind::string)) return fallback;
  if (const auto whole = parse_integer(workspace, value.text())) return Value(*whole);
  const auto real = parse_real(workspace, value.text());
  return real ? truncated(workspace, *real, fallback) : fallback;
}

Value filter_float(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'float'", arguments, {"default"});
  const Value fallback = bound.get(0, Value(0.0));
  if (value.is(Kind::undefined)) workspace.fail(value.undefined().what);
  if (value.is_number()) return Value(value.real());
  if (!value.is(Kind::string)) return fallback;
  const auto real = parse_real(workspace, value.text());
  return real ? Value(*real) : fallback;
}

Value filter_abs(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'abs'", arguments, {});
  if (value.is(Kind::real)) return Value(std::abs(value.real()));
  if (!value.is_integral()) {
    workspace.fail(fmt::format("the filter 'abs' on {}", describe(value)));
  }
  return value.integer() < 0 ? negate(workspace, value) : Value(value.integer());
}

// The nearest number with so many digits behind the point; ties of the exact value to even.
double rounded(double value, std::int64_t digits) {
  constexpr std::int64_t kMostDigits = 323;  // beyond, every float is its own nearest
  if (!std::isfinite(value) || digits > kMostDigits) return value;
  char buffer[700];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                                 static_cast<int>(digits))
                       .ptr;
  double result = 0;
  std::from_chars(buffer, end, result);
  return result;
}

Value filter_round(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'round'", arguments, {"precision", "method"});
  const std::int64_t digits = bound.integer(0, 0);
  const std::string_view method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    workspace.fail("the filter 'round' knows the methods common, ceil and floor");
  }
  if (!value.is_number()) workspace.fail(fmt::format("the filter 'round' on {}", describe(value)));
  if (digits < 0) workspace.unsupported("the filter 'round' with a negative precision");
  if (method == "common") {
    return value.is_integral() ? Value(value.integer()) : Value(rounded(value.real(), digits));
  }
  const Value scale = binary(workspace, BinaryOp::power, Value(std::int64_t{10}), Value(digits));
  const double scaled = binary(workspace, BinaryOp::multiply, value, scale).real();
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  if (!std::isfinite(whole)) workspace.fail("an infinite number as an integer");
  if (std::abs(whole) > 9007199254740992.0) {
    workspace.unsupported("the filter 'round' on a number so large");
  }
  return binary(workspace, BinaryOp::divide, Value(static_cast<std::int64_t>(whole)), scale);
}

Value filter_length(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'length'", arguments, {});
  if (value.is(Kind::loop)) return Value(value.loop().total(workspace));
  const std::int64_t length = length_of(value);
  if (length < 0) workspace.fail(fmt::format("the length of {}", describe(value)));
  return Value(length);
}

Value filter_wordcount(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'wordcount'", arguments, {});
  const Value text = as_string(workspace, value);
  workspace.charge_reading(text.text().size());
  if (!is_ascii(text.text())) {
    workspace.unsupported("the filter 'wordcount' on text outside ASCII");
  }
  std::int64_t words = 0;
  bool inside = false;
  for (const char c : text.text()) {
    const char folded = static_cast<char>(c | 0x20);
    const bool part = is_digit(c) || (folded >= 'a' && folded <= 'z') || c == '_';
    words += part && !inside ? 1 : 0;
    inside = part;
  }
  return Value(words);
}

Value filter_default(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'default'", arguments, {"default_value", "boolean"});
  const bool replaced = value.is(Kind::undefined) || (bound.truth(1, false) && !is_true(value));
  if (!replaced) return value;
  return bound.has(0) ? bound.get(0) : workspace.text("");
}

}  // namespace

std::span<const NamedFilter> number_filters() noexcept {
  static constexpr NamedFilter kFilters[] = {
      {"abs", filter_abs},         {"count", filter_length}, {"d", filter_default},
      {"default", filter_default}, {"float", filter_float},  {"int", filter_int},
      {"length", filter_length},   {"round", filter_round},  {"wordcount", filter_wordcount},
  };
  return kFilters;
}

}  // namespace lockstep::jinja
