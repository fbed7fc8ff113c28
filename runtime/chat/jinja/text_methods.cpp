// Python's methods of str, as far as templates use them.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/chat/jinja/formatting.h"
#include "runtime/chat/jinja/methods.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

class TextMethod {
 public:
  TextMethod(Workspace& workspace, Value self, std::string_view name, const Arguments& arguments)
      : workspace_(workspace), self_(self), name_(name), arguments_(arguments) {}

  Value call();

 private:
  using Parameters = std::initializer_list<std::string_view>;

  std::string_view text() const { return self_.text(); }

  Bound bind(Parameters parameters, std::size_t required = 0) const {
    return Bound(workspace_, fmt::format("the method '{}'", name_), arguments_, parameters,
                 required);
  }
  // Most methods of str take no names for their arguments.
  Bound bind_positions(Parameters parameters, std::size_t required = 0) const {
    if (!arguments_.named.empty()) {
      workspace_.fail(fmt::format("the method '{}' takes no named arguments", name_));
    }
    return bind(parameters, required);
  }
  [[noreturn]] void refuse(std::string_view why) const {
    workspace_.unsupported(fmt::format("the method '{}' of a string{}", name_, why));
  }

  Value made(std::string_view part) const { return workspace_.text(std::string(part)); }
  Value list_of(const std::vector<std::string_view>& parts) const {
    std::vector<Value> items;
    items.reserve(parts.size());
    for (const std::string_view part : parts) items.push_back(made(part));
    return workspace_.list(std::move(items));
  }

  Value strip_method(Side side) const {
    return made(strip(text(), bind_positions({"chars"}).optional_text(0), side));
  }
  Value split_method(bool from_right) const;
  Value split_once(bool from_right) const;
  Value ends_method(bool at_end) const;
  Value find_method(bool from_right, bool must_exist) const;
  Value count_method() const;
  Value replace_method() const;
  Value join_method() const;
  Value pad_method() const;
  Value mapped(std::optional<std::string> (*map)(std::string_view)) const;
  Value class_method() const;
  Value remove_method() const;
  std::optional<Value> look() const;
  std::optional<Value> change() const;

  // The part of the text that the arguments `start` and `end` leave, and its first character's
  // index; nothing if start lies behind the text.
  struct Window {
    std::string_view text;
    std::size_t first = 0;
  };
  std::optional<Window> window(const Bound& bound, std::size_t start_at) const;

  Workspace& workspace_;
  Value self_;
  std::string_view name_;
  const Arguments& arguments_;
};

Value TextMethod::split_method(bool from_right) const {
  const Bound bound = bind({"sep", "maxsplit"});
  const std::int64_t limit = bound.integer(1, -1);
  const auto separator = bound.optional_text(0);
  if (!separator) return list_of(split_space(workspace_, text(), limit, from_right));
  if (separator->empty()) workspace_.fail(fmt::format("the method '{}' at nothing", name_));
  return list_of(split_at(workspace_, text(), *separator, limit, from_right));
}

Value TextMethod::split_once(bool from_right) const {
  const std::string_view separator = bind_positions({"sep"}, 1).text(0, {});
  if (separator.empty()) workspace_.fail(fmt::format("the method '{}' at nothing", name_));
  const std::size_t at = from_right ? rfind_part(text(), separator) : find_part(text(), separator);
  if (at == std::string_view::npos) {
    const Value nothing = made({});
    return from_right ? workspace_.tuple({nothing, nothing, self_})
                      : workspace_.tuple({self_, nothing, nothing});
  }
  return workspace_.tuple(
      {made(text().substr(0, at)), made(separator), made(text().substr(at + separator.size()))});
}

std::optional<TextMethod::Window> TextMethod::window(const Bound& bound,
                                                     std::size_t start_at) const {
  const auto length = static_cast<std::int64_t>(self_.string().length);
  const auto resolve = [&](std::size_t i, std::int64_t fallback) {
    if (!bound.has(i) || bound.get(i).is(Kind::none)) return fallback;
    std::int64_t index = bound.integer(i, 0);
    if (index < 0) index = std::max<std::int64_t>(index + length, 0);
    return index;
  };
  const std::int64_t start = resolve(start_at, 0);
  const std::int64_t end = std::min(resolve(start_at + 1, length), length);
  if (start > length || start > end) return std::nullopt;
  const auto first = static_cast<std::size_t>(start);
  const std::size_t begin = byte_of_character(text(), first);
  return Window{
      text().substr(begin, byte_of_character(text(), static_cast<std::size_t>(end)) - begin),
      first};
}

Value TextMethod::ends_method(bool at_end) const {
  const Bound bound = bind_positions({"part", "start", "end"}, 1);
  const auto part = window(bound, 1);
  const auto fits = [&](Value value) {
    if (!value.is(Kind::string)) {
      workspace_.fail(fmt::format("the method '{}' is given {}", name_, describe(value)));
    }
    if (!part) return false;
    return at_end ? part->text.ends_with(value.text()) : part->text.starts_with(value.text());
  };
  const Value wanted = bound.get(0);
  if (!wanted.is(Kind::tuple)) return Value(fits(wanted));
  const std::vector<Value>& choices = wanted.sequence().items;
  return Value(std::any_of(choices.begin(), choices.end(), fits));
}

Value TextMethod::find_method(bool from_right, bool must_exist) const {
  const Bound bound = bind_positions({"sub", "start", "end"}, 1);
  const std::string_view wanted = bound.text(0, {});
  const auto part = window(bound, 1);
  std::size_t at = std::string_view::npos;
  if (part) at = from_right ? rfind_part(part->text, wanted) : find_part(part->text, wanted);
  if (at == std::string_view::npos) {
    if (must_exist) workspace_.fail(fmt::format("the method '{}' does not find the text", name_));
    return Value(std::int64_t{-1});
  }
  return Value(static_cast<std::int64_t>(part->first + count_characters(part->text.substr(0, at))));
}

Value TextMethod::count_method() const {
  const Bound bound = bind_positions({"sub", "start", "end"}, 1);
  const std::string_view wanted = bound.text(0, {});
  const auto part = window(bound, 1);
  return Value(static_cast<std::int64_t>(part ? count_parts(part->text, wanted) : 0));
}

Value TextMethod::replace_method() const {
  const Bound bound = bind_positions({"old", "new", "count"}, 2);
  const std::string_view old = bound.text(0, {}), with = bound.text(1, {});
  const std::int64_t limit = bound.integer(2, -1);
  std::uint64_t places = count_parts(text(), old);
  if (limit >= 0) places = std::min(places, static_cast<std::uint64_t>(limit));
  workspace_.check_text(text().size() + places * with.size());
  return workspace_.text(replace(text(), old, with, limit));
}

Value TextMethod::join_method() const {
  const std::vector<Value> items = items_of(workspace_, bind_positions({"iterable"}, 1).get(0));
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is(Kind::string)) {
      workspace_.fail(fmt::format("the method 'join' is given {} in its list", describe(items[i])));
    }
    if (items[i].string().markup) workspace_.unsupported("escaped text in the method 'join'");
    workspace_.check_text(out.size() + text().size() + items[i].text().size());
    if (i > 0) out += text();
    out += items[i].text();
  }
  return workspace_.text(std::move(out));
}

Value TextMethod::pad_method() const {
  const Bound bound =
      name_ == "zfill" ? bind_positions({"width"}, 1) : bind_positions({"width", "fillchar"}, 1);
  const std::string_view fill = name_ == "zfill" ? "0" : bound.text(1, " ");
  if (count_characters(fill) != 1) workspace_.fail("a fill of more or less than one character");
  const auto length = static_cast<std::int64_t>(self_.string().length);
  const std::int64_t width = bound.integer(0, 0);
  if (width <= length) return self_;
  const std::int64_t pad = width - length;
  if (static_cast<std::uint64_t>(pad) > workspace_.limits().text_bytes) {
    workspace_.check_text(static_cast<std::uint64_t>(pad));
  }
  workspace_.check_text(text().size() + static_cast<std::uint64_t>(pad) * fill.size());
  std::int64_t left = name_ == "ljust" ? 0 : pad;
  if (name_ == "center") left = pad / 2 + (pad & width & 1);
  const bool sign = name_ == "zfill" && (text().starts_with('-') || text().starts_with('+'));
  std::string out(text().substr(0, sign ? 1 : 0));
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += text().substr(sign ? 1 : 0);
  for (std::int64_t i = left; i < pad; ++i) out += fill;
  return workspace_.text(std::move(out));
}

Value TextMethod::mapped(std::optional<std::string> (*map)(std::string_view)) const {
  bind_positions({});
  auto out = map(text());
  if (!out) refuse(" on characters without a simple other case");
  return workspace_.text(std::move(*out));
}

Value TextMethod::class_method() const {
  bind_positions({});
  if (name_ == "isascii") return Value(self_.string().is_ascii());
  if (name_ == "isspace") {
    for (std::size_t at = 0; at < text().size();) {
      if (!is_space(next_character(text(), at))) return Value(false);
    }
    return Value(!text().empty());
  }
  if (!self_.string().is_ascii()) refuse(" outside ASCII");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto any = [&](auto holds) { return std::any_of(text().begin(), text().end(), holds); };
  const auto all = [&](auto holds) {
    return Value(!text().empty() && std::all_of(text().begin(), text().end(), holds));
  };
  if (name_ == "islower") return Value(any(is_lower) && !any(is_upper));
  if (name_ == "isupper") return Value(any(is_upper) && !any(is_lower));
  if (name_ == "isdigit" || name_ == "isdecimal" || name_ == "isnumeric") return all(is_digit);
  if (name_ == "isalpha") return all([&](char c) { return is_lower(c) || is_upper(c); });
  if (name_ == "isalnum") {
    return all([&](char c) { return is_lower(c) || is_upper(c) || is_digit(c); });
  }
  refuse("");
}

Value TextMethod::remove_method() const {
  const std::string_view part = bind_positions({"part"}, 1).text(0, {});
  if (name_ == "removeprefix") {
    return text().starts_with(part) ? made(text().substr(part.size())) : self_;
  }
  return text().ends_with(part) ? made(text().substr(0, text().size() - part.size())) : self_;
}

// Methods that ask something about the text.
std::optional<Value> TextMethod::look() const {
  if (name_ == "startswith") return ends_method(false);
  if (name_ == "endswith") return ends_method(true);
  if (name_ == "find") return find_method(false, false);
  if (name_ == "rfind") return find_method(true, false);
  if (name_ == "index") return find_method(false, true);
  if (name_ == "rindex") return find_method(true, true);
  if (name_ == "count") return count_method();
  if (name_.starts_with("is")) return class_method();
  return std::nullopt;
}

// Methods that give another text, or several.
std::optional<Value> TextMethod::change() const {
  if (name_ == "strip") return strip_method(Side::both);
  if (name_ == "lstrip") return strip_method(Side::left);
  if (name_ == "rstrip") return strip_method(Side::right);
  if (name_ == "split") return split_method(false);
  if (name_ == "rsplit") return split_method(true);
  if (name_ == "partition") return split_once(false);
  if (name_ == "rpartition") return split_once(true);
  if (name_ == "splitlines") {
    return list_of(split_lines(workspace_, text(), bind({"keepends"}).truth(0, false)));
  }
  if (name_ == "replace") return replace_method();
  if (name_ == "join") return join_method();
  if (name_ == "upper") return mapped(upper);
  if (name_ == "lower") return mapped(lower);
  if (name_ == "capitalize") return mapped(capitalize);
  if (name_ == "title") {
    bind_positions({});
    if (!self_.string().is_ascii()) refuse(" outside ASCII");
    return workspace_.text(title_letters(text()));
  }
  if (name_ == "removeprefix" || name_ == "removesuffix") return remove_method();
  if (name_ == "center" || name_ == "ljust" || name_ == "rjust" || name_ == "zfill") {
    return pad_method();
  }
  if (name_ == "format") return format_braces(workspace_, self_, arguments_);
  return std::nullopt;
}

Value TextMethod::call() {
  workspace_.charge_reading(text().size());
  for (const Value argument : arguments_.positional) {
    if (argument.is(Kind::string)) workspace_.charge_reading(argument.text().size());
  }
  if (self_.string().markup) refuse(" that is escaped");
  if (const auto value = look()) return *value;
  if (const auto value = change()) return *value;
  refuse("");
}

}  // namespace

Value call_text_method(Workspace& workspace, Value self, std::string_view name,
                       const Arguments& arguments) {
  return TextMethod(workspace, self, name, arguments).call();
}

}  // namespace lockstep::jinja
