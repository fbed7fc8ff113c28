// See print.h. Lists may share their items, so a small value can be a huge text: what is written is
// charged while it grows.
#include "runtime/chat/jinja/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/unicode.h"
#include "runtime/utf8.h"

namespace lockstep::jinja {
namespace {

// repr() of a string: in single quotes, or in double ones if that saves escaping.
void append_quoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_character(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, at - begin);
    } else {
      const auto code = static_cast<std::uint32_t>(c);
      out += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
    }
  }
  out += quote;
}

class Printer {
 public:
  Printer(Workspace& workspace, std::string& out) : workspace_(workspace), out_(out) {}

  void str(Value value) {
    if (value.is(Kind::string)) {
      workspace_.charge_reading(value.text().size());
      workspace_.check_text(out_.size() + value.text().size());
      out_ += value.text();
    } else if (!value.is(Kind::undefined)) {
      repr(value);
    }
  }

  void repr(Value value) {
    workspace_.charge_steps();
    workspace_.check_text(out_.size());
    switch (value.kind()) {
      case Kind::missing:
      case Kind::undefined:
        out_ += "Undefined";
        break;
      case Kind::none:
        out_ += "None";
        break;
      case Kind::boolean:
        out_ += value.boolean() ? "True" : "False";
        break;
      case Kind::integer:
        out_ += std::to_string(value.integer());
        break;
      case Kind::real:
        out_ += real_text(value.real());
        break;
      case Kind::string:
        workspace_.charge_reading(value.text().size());
        if (value.string().markup) workspace_.unsupported("escaped text inside a printed list");
        append_quoted(value.text(), out_);
        break;
      case Kind::range:
        range(value.sequence());
        break;
      case Kind::list:
      case Kind::tuple:
      case Kind::view:
        sequence(value);
        break;
      case Kind::dict:
        dict(value.dict());
        break;
      case Kind::loop:
        out_ += fmt::format("<LoopContext {}/{}>", value.loop().index0 + 1,
                            value.loop().total(workspace_));
        break;
      case Kind::callable:
        if (value.callable().kind == CallableKind::macro) {
          macro(value.callable().name);
          break;
        }
        [[fallthrough]];
      case Kind::iterator:
      case Kind::name_space:
        // Python would write an address, or might never end.
        workspace_.unsupported(fmt::format("the text of {}", describe(value)));
    }
  }

 private:
  void macro(std::string_view name) {
    out_ += name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", name);
  }

  void range(const Sequence& range) {
    out_ += fmt::format("range({}, {}", range.start, range.stop);
    out_ += range.step == 1 ? ")" : fmt::format(", {})", range.step);
  }

  void sequence(Value value) {
    const Sequence& items = value.sequence();
    const bool tuple = value.is(Kind::tuple);
    if (value.is(Kind::view)) out_ += fmt::format("{}(", items.view_name);
    out_ += tuple ? '(' : '[';
    for (std::size_t i = 0; i < items.items.size(); ++i) {
      if (i > 0) out_ += ", ";
      repr(items.items[i]);
    }
    if (tuple && items.items.size() == 1) out_ += ',';
    out_ += tuple ? ')' : ']';
    if (value.is(Kind::view)) out_ += ')';
  }

  void dict(const Dict& dict) {
    out_ += '{';
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      repr(dict.entries[i].first);
      out_ += ": ";
      repr(dict.entries[i].second);
    }
    out_ += '}';
  }

  Workspace& workspace_;
  std::string& out_;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  // d.ddde+xx, to be laid out as Python does: with an exponent from 1e16 on and below 1e-4.
  const std::size_t mark = text.find('e');
  const bool negative = text.front() == '-';
  std::string digits(text.substr(negative ? 1 : 0, mark - (negative ? 1 : 0)));
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  int exponent = 0;
  const char* first = text.data() + mark + 1 + (text[mark + 1] == '+' ? 1 : 0);
  std::from_chars(first, text.data() + text.size(), exponent);
  const std::string sign = negative ? "-" : "";
  if (exponent >= 16 || exponent < -4) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string to_text(Workspace& workspace, Value value) {
  std::string out;
  append_text(workspace, value, out);
  return out;
}

void append_text(Workspace& workspace, Value value, std::string& out) {
  Printer(workspace, out).str(value);
}

std::string repr(Workspace& workspace, Value value) {
  std::string out;
  Printer(workspace, out).repr(value);
  return out;
}

}  // namespace lockstep::jinja
