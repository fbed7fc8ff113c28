// See string_literal.h. Jinja takes Python's unicode_escape codec; this is what it does.
#include "runtime/chat/jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/chat/jinja/token.h"
#include "runtime/chat/jinja/unicode.h"
#include "runtime/utf8.h"

namespace lockstep::jinja {
namespace {

void append_code(std::string& out, std::uint32_t code, std::size_t line) {
  if (code >= 0xD800 && code < 0xE000)
    unsupported_syntax(line, "half a surrogate pair in a string");
  if (code > 0x10FFFF) syntax_error(line, "a character beyond the last in a string");
  append_utf8(out, static_cast<char32_t>(code));
}

// Exactly `count` hexadecimal digits.
std::uint32_t hexadecimal(std::string_view literal, std::size_t& at, std::size_t count,
                          std::size_t line) {
  const std::string_view digits = literal.substr(at, count);
  std::uint32_t code = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() != count || result.ptr != digits.data() + count) {
    syntax_error(line, fmt::format("an escape in a string without {} digits", count));
  }
  at += count;
  return code;
}

// The character that a backslash and `c` stand for, or 0.
char simple_escape(char c) noexcept {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

// A backslash before a character outside ASCII: the codec sees the backslash that it was itself
// replaced with.
void append_spelled(std::string& out, char32_t character) {
  const auto code = static_cast<std::uint32_t>(character);
  out += code < 0x100     ? fmt::format("\\x{:02x}", code)
         : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
}

}  // namespace

std::string unescape(std::string_view literal, std::size_t line) {
  std::string out;
  for (std::size_t at = 0; at < literal.size();) {
    if (literal[at] != '\\') {
      out += literal[at++];
      continue;
    }
    ++at;
    const std::size_t begin = at;
    const char32_t character = next_character(literal, at);
    if (character >= 0x80) {
      append_spelled(out, character);
      continue;
    }
    const char c = static_cast<char>(character);
    if (const char simple = simple_escape(c); simple != 0) {
      out += simple;
    } else if (c == '\n') {
      continue;  // a line that goes on
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_code(out, hexadecimal(literal, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, line), line);
    } else if (c >= '0' && c <= '7') {
      std::uint32_t code = 0;
      for (at = begin; at < literal.size() && at < begin + 3; ++at) {
        if (literal[at] < '0' || literal[at] > '7') break;
        code = code * 8 + static_cast<std::uint32_t>(literal[at] - '0');
      }
      append_code(out, code, line);
    } else if (c == 'N') {
      unsupported_syntax(line, "a character by its name in a string");
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace lockstep::jinja
