// A scanner for the little of Jinja that decides what is written: the three kinds of tags, the
// white space rules that chat templates are written for (trim_blocks and lstrip_blocks on), string
// literals, and the names between them.
#include "runtime/chat/template_text.h"

#include <cctype>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

bool is_name(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void strip_right(std::string& text, std::string_view characters) {
  text.erase(text.find_last_not_of(characters) + 1);
}

// Reads a string literal that starts at text[at] (a quote); moves `at` behind it.
std::string read_literal(std::string_view text, std::size_t& at) {
  const char quote = text[at++];
  std::string value;
  while (at < text.size() && text[at] != quote) {
    char c = text[at++];
    if (c == '\\' && at < text.size()) {
      c = text[at++];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    value += c;
  }
  if (at < text.size()) ++at;
  return value;
}

// Writes what the expression between {{ and }} writes. A value is a name with its attributes and
// subscripts; which value it is, its last part says: message.role, message['content'], content.
void write_expression(std::string_view code, std::string& out) {
  std::size_t at = 0;
  while (at < code.size()) {
    const char c = code[at];
    if (c == '\'' || c == '"') {
      out += read_literal(code, at);
    } else if (is_name(c)) {
      std::string last;
      while (at < code.size() && (is_name(code[at]) || code[at] == '.' || code[at] == '[')) {
        if (is_name(code[at])) {
          last.clear();
          while (at < code.size() && is_name(code[at])) last += code[at++];
          continue;
        }
        const bool subscript = code[at++] == '[';
        if (!subscript) continue;
        const bool named = at < code.size() && (code[at] == '\'' || code[at] == '"');
        if (named) last = read_literal(code, at);
        while (at < code.size() && code[at] != ']') ++at;
        if (at < code.size()) ++at;
      }
      out += last == "role" ? kRoleMark : last == "content" ? kContentMark : kOtherMark;
    } else {
      // An operator or call other than joining changes what its neighbours write.
      if (c != '+' && c != '~' && kWhiteSpace.find(c) == std::string_view::npos) out += kOtherMark;
      ++at;
    }
  }
}

// The end of the tag that starts at text[at]: the position of `close`, not one inside a string
// literal.
std::size_t find_close(std::string_view text, std::size_t at, std::string_view close,
                       bool strings) {
  while (at < text.size()) {
    if (text.substr(at).starts_with(close)) return at;
    if (strings && (text[at] == '\'' || text[at] == '"')) {
      read_literal(text, at);
    } else {
      ++at;
    }
  }
  return text.size();
}

// Plain text in front of a tag: white space goes as "{%-" or, at the start of a line, "{%" says.
void write_plain(std::string text, bool dash, bool block, std::string& out) {
  if (dash) {
    strip_right(text, kWhiteSpace);
  } else if (block) {
    const std::size_t line = text.find_last_not_of(" \t");
    const bool starts_line =
        line == std::string::npos ? out.empty() || out.back() == '\n' : text[line] == '\n';
    if (starts_line) strip_right(text, " \t");
  }
  out += text;
}

}  // namespace

std::string template_text(std::string_view source) {
  std::string out;
  std::size_t at = 0;
  bool strip_left = false;     // the last tag ended with "-"
  bool strip_newline = false;  // the last tag was a block or a comment
  while (at < source.size()) {
    std::size_t open = source.find('{', at);
    while (open != std::string_view::npos &&
           (open + 1 >= source.size() ||
            std::string_view("{%#").find(source[open + 1]) == std::string_view::npos)) {
      open = source.find('{', open + 1);
    }
    const bool last = open == std::string_view::npos;
    std::string plain(source.substr(at, last ? last : open - at));
    if (last) plain = source.substr(at);
    if (strip_left) {
      const std::size_t keep = plain.find_first_not_of(kWhiteSpace);
      plain.erase(0, keep == std::string::npos ? plain.size() : keep);
    } else if (strip_newline && plain.starts_with('\n')) {
      plain.erase(0, 1);
    }
    if (last) {
      if (plain.ends_with('\n')) plain.pop_back();  // Jinja drops the newline at the very end
      out += plain;
      break;
    }
    const char kind = source[open + 1];
    const bool dash = open + 2 < source.size() && source[open + 2] == '-';
    write_plain(std::move(plain), dash, kind != '{', out);
    const std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    const std::size_t begin = open + (dash ? 3 : 2);
    const std::size_t end = find_close(source, begin, close, kind != '#');
    strip_left = end > begin && source[end - 1] == '-';
    strip_newline = kind != '{';
    if (kind == '{') {
      write_expression(source.substr(begin, end - begin - (strip_left ? 1 : 0)), out);
    }
    at = end + close.size();
  }
  return out;
}

}  // namespace lockstep
