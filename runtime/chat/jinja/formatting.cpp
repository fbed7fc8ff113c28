// See formatting.h.
#include "runtime/chat/jinja/formatting.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "runtime/chat/jinja/access.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

// Everything after a "%" up to its letter.
struct Conversion {
  bool named = false;
  std::string_view name;
  int precision = -1;
  char letter = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Workspace& workspace, Value format, Value values)
      : workspace_(workspace), text_(format.text()), values_(values) {
    if (format.string().markup) workspace.unsupported("escaped text as a format");
  }

  std::string run() {
    while (at_ < text_.size()) {
      workspace_.charge_steps();
      const std::size_t mark = text_.find('%', at_);
      out_ += text_.substr(at_, mark - at_);
      if (mark == std::string_view::npos) break;
      at_ = mark + 1;
      const Conversion conversion = parse();
      if (conversion.letter == '%') {
        out_ += '%';
      } else {
        convert(conversion, value_for(conversion));
      }
      workspace_.check_text(out_.size());
    }
    // Whatever can be asked for items may be left unused.
    const bool one = !values_.is(Kind::tuple);
    const bool has_items = values_.is(Kind::dict) || values_.is(Kind::list) ||
                           values_.is(Kind::range) || values_.is(Kind::undefined);
    const std::size_t count = one ? 1 : values_.sequence().items.size();
    if (next_ < count && !(one && has_items)) workspace_.fail("a format is given too many values");
    return std::move(out_);
  }

 private:
  char take() {
    if (at_ == text_.size()) workspace_.fail("a format ends after '%'");
    return text_[at_++];
  }

  Conversion parse() {
    Conversion conversion;
    char c = take();
    if (c == '(') {
      const std::size_t end = text_.find(')', at_);
      if (end == std::string_view::npos) workspace_.fail("a format with '(' but no ')'");
      conversion.named = true;
      conversion.name = text_.substr(at_, end - at_);
      if (conversion.name.find('(') != std::string_view::npos) {
        workspace_.unsupported("a format with '(' in a name");
      }
      at_ = end + 1;
      c = take();
    }
    if (c == '.') {
      conversion.precision = 0;
      for (c = take(); c >= '0' && c <= '9'; c = take()) {
        conversion.precision = conversion.precision * 10 + (c - '0');
        if (conversion.precision > 100) workspace_.unsupported("a format with that precision");
      }
    }
    conversion.letter = c;
    return conversion;
  }

  Value value_for(const Conversion& conversion) {
    if (conversion.named) {
      if (!values_.is(Kind::dict)) workspace_.fail("a format with names needs a dict");
      const Value* value = values_.dict().find(conversion.name);
      if (!value) workspace_.fail("a format names a value that is not given");
      next_ = 1;
      return *value;
    }
    if (!values_.is(Kind::tuple)) {
      if (next_++ > 0) workspace_.fail("a format is given too few values");
      return values_;
    }
    const std::vector<Value>& items = values_.sequence().items;
    if (next_ == items.size()) workspace_.fail("a format is given too few values");
    return items[next_++];
  }

  void convert(const Conversion& conversion, Value value) {
    const bool precise = conversion.precision >= 0;
    switch (conversion.letter) {
      case 's':
        if (precise) break;
        append_text(workspace_, value, out_);
        return;
      case 'r':
        if (precise) break;
        out_ += repr(workspace_, value);
        return;
      case 'd':
      case 'i':
      case 'u':
        if (precise) break;
        out_ += std::to_string(whole(value));
        return;
      case 'x':
        if (precise || !value.is_integral() || value.integer() < 0) break;
        out_ += fmt::format("{:x}", value.integer());
        return;
      case 'f':
      case 'F':
        if (!value.is_number() || !std::isfinite(value.real())) break;
        append_fixed(value.real(), precise ? conversion.precision : 6);
        return;
      default:
        break;
    }
    workspace_.unsupported(fmt::format("the format '%{}{}' for {}", precise ? ".n" : "",
                                       conversion.letter, describe(value)));
  }

  std::int64_t whole(Value value) {
    if (value.is_integral()) return value.integer();
    if (!value.is(Kind::real)) {
      workspace_.fail(fmt::format("the format '%d' for {}", describe(value)));
    }
    if (!(std::abs(value.real()) < 9.2e18)) workspace_.unsupported("an integer beyond 64 bits");
    return static_cast<std::int64_t>(value.real());
  }

  void append_fixed(double value, int precision) {
    char buffer[512];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, precision)
            .ptr;
    out_.append(buffer, end);
  }

  Workspace& workspace_;
  std::string_view text_;
  Value values_;
  std::size_t at_ = 0, next_ = 0;
  std::string out_;
};

// The value that the field "name", "0" or "" of a format with braces stands for.
Value field_value(Workspace& workspace, std::string_view field, const Arguments& arguments,
                  std::size_t& next) {
  if (field.find_first_of(".[") != std::string_view::npos) {
    workspace.unsupported("a format field with '.' or '['");
  }
  const bool numbered = field.find_first_not_of("0123456789") == std::string_view::npos;
  if (!numbered) {
    for (const auto& [name, value] : arguments.named) {
      if (name == field) return value;
    }
    workspace.fail("a format names a value that is not given");
  }
  // Python takes either "{}" or "{0}" in one format; the mark past the end tells which it was.
  constexpr std::size_t kByNumber = static_cast<std::size_t>(1) << 32;
  if (field.empty() == (next >= kByNumber) && next != 0) {
    workspace.fail("a format mixes '{}' and '{0}'");
  }
  std::size_t index = next;
  if (field.empty()) {
    ++next;
  } else {
    next = kByNumber;
    if (field.size() > 4) workspace.fail("a format is given too few values");
    std::from_chars(field.data(), field.data() + field.size(), index);
  }
  if (index >= arguments.positional.size()) workspace.fail("a format is given too few values");
  return arguments.positional[index];
}

}  // namespace

Value format_percent(Workspace& workspace, Value format, Value values) {
  return workspace.text(PercentFormatter(workspace, format, values).run());
}

Value format_braces(Workspace& workspace, Value format, const Arguments& arguments) {
  const std::string_view text = format.text();
  if (format.string().markup) workspace.unsupported("escaped text as a format");
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size();) {
    workspace.charge_steps();
    const char c = text[at++];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at < text.size() && text[at] == c) {
      out += c;
      ++at;
      continue;
    }
    if (c == '}') workspace.fail("a single '}' in a format");
    const std::size_t end = text.find_first_of("{}", at);
    if (end == std::string_view::npos) workspace.fail("a single '{' in a format");
    if (text[end] == '{') workspace.unsupported("a format field within another");
    const std::string_view field = text.substr(at, end - at);
    if (field.find_first_of(":!") != std::string_view::npos) {
      workspace.unsupported("a format field with ':' or '!'");
    }
    at = end + 1;
    append_text(workspace, field_value(workspace, field, arguments, next), out);
  }
  return workspace.text(std::move(out));
}

}  // namespace lockstep::jinja
