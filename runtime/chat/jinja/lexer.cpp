// Cutting a template into tokens by the rules of Jinja's lexer, white space control included. The
// rules matter to the byte: a newline more or less in a prompt is another prompt.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "lockstep/error.h"
#include "runtime/chat/jinja/limits.h"
#include "runtime/chat/jinja/numbers.h"
#include "runtime/chat/jinja/string_literal.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/token.h"
#include "runtime/chat/jinja/unicode.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep::jinja {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_name_start(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) noexcept { return is_name_start(c) || is_digit(c); }

// One kind of line end, and none at the very end.
std::string with_plain_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::size_t after_space(std::string_view text, std::size_t at) {
  return text.size() - strip(text.substr(at), std::nullopt, Side::left).size();
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) next_tag();
    add(TokenKind::end);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  bool sees(std::string_view what) const { return rest().starts_with(what); }

  void add(TokenKind kind, std::string text = {}) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }

  // Moves on, counting lines.
  void skip_to(std::size_t end) {
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end),
                                                 '\n'));
    at_ = end;
  }

  // The text up to the tag at `open`, without the white space that the tag takes away.
  void add_data(std::size_t open, char sign, bool prints) {
    std::string_view data = text_.substr(at_, open - at_);
    if (sign == '-') {
      data = strip(data, std::nullopt, Side::right);
    } else if (sign != '+' && !prints) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
      const bool whole_line = start > 0 || starts_line_;
      if (whole_line && strip(data.substr(start), std::nullopt, Side::both).empty()) {
        data = data.substr(0, start);
      }
    }
    if (!data.empty()) add(TokenKind::data, std::string(data));
    skip_to(open);
  }

  // The sign behind an opening: "{%-".
  char sign_at(std::size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : '\0';
  }

  // One stretch of data and the tag behind it.
  void next_tag() {
    std::size_t open = text_.find('{', at_);
    while (open != std::string_view::npos &&
           (open + 1 >= text_.size() ||
            std::string_view("%{#").find(text_[open + 1]) == std::string_view::npos)) {
      open = text_.find('{', open + 1);
    }
    if (open == std::string_view::npos) {
      add(TokenKind::data, std::string(rest()));
      skip_to(text_.size());
      return;
    }
    const char kind = text_[open + 1];
    const char sign = sign_at(open + 2);
    const std::size_t inside = open + 2 + (sign == '\0' ? 0 : 1);
    add_data(open, sign, kind == '{');
    if (kind == '#') {
      skip_to(inside);
      comment();
    } else if (kind == '{') {
      add(TokenKind::print_begin);
      skip_to(inside);
      code(true);
    } else if (const std::size_t body = raw_body(inside); body != 0) {
      skip_to(body);
      raw();
    } else {
      add(TokenKind::block_begin);
      skip_to(inside);
      code(false);
    }
  }

  // Moves behind the end of a tag, of `length` bytes, and what it takes away. `sign`: before it.
  void end_tag(std::size_t length, char sign, bool trims) {
    std::size_t end = at_ + length;
    if (sign == '-') {
      end = after_space(text_, end);
    } else if (sign == '\0' && trims && end < text_.size() && text_[end] == '\n') {
      ++end;
    }
    starts_line_ = text_[end - 1] == '\n';
    skip_to(end);
  }

  void comment() {
    if (at_ == text_.size()) return;  // nothing is what Jinja, too, finds there
    const std::size_t close = text_.find("#}", at_);
    if (close == std::string_view::npos) syntax_error(line_, "a comment without end");
    const char sign = close > at_ ? sign_at(close - 1) : '\0';
    skip_to(close);
    end_tag(2, sign, true);
  }

  // Where the text of {% raw %} starts, if the tag is one; else 0.
  std::size_t raw_body(std::size_t inside) const {
    std::size_t at = after_space(text_, inside);
    if (!text_.substr(at).starts_with("raw")) return 0;
    at = after_space(text_, at + 3);
    if (text_.substr(at).starts_with("-%}")) return after_space(text_, at + 3);
    return text_.substr(at).starts_with("%}") ? at + 2 : 0;
  }

  void raw() {
    if (at_ == text_.size()) return;
    starts_line_ = text_[at_ - 1] == '\n';
    for (std::size_t open = text_.find("{%", at_); open != std::string_view::npos;
         open = text_.find("{%", open + 1)) {
      const char sign = sign_at(open + 2);
      std::size_t at = after_space(text_, open + 2 + (sign == '\0' ? 0 : 1));
      if (!text_.substr(at).starts_with("endraw")) continue;
      at = after_space(text_, at + 6);
      const char end_sign = sign_at(at);
      const std::size_t close = at + (end_sign == '\0' ? 0 : 1);
      if (!text_.substr(close).starts_with("%}")) continue;
      add_data(open, sign, false);
      skip_to(close);
      end_tag(2, end_sign, true);
      return;
    }
    syntax_error(line_, "the tag 'raw' without end");
  }

  // The tokens of a tag up to its end.
  void code(bool prints) {
    const std::string_view close = prints ? "}}" : "%}";
    brackets_.clear();
    for (;;) {
      if (at_ == text_.size()) syntax_error(line_, "the template ends inside a tag");
      const char sign = sign_at(at_);
      const bool signed_end = sign == '-' || (sign == '+' && !prints);
      const std::size_t skip = signed_end && text_.substr(at_ + 1).starts_with(close) ? 1 : 0;
      if (brackets_.empty() && (skip == 1 || sees(close))) {
        add(prints ? TokenKind::print_end : TokenKind::block_end);
        at_ += skip;
        end_tag(2, skip == 1 ? sign : '\0', !prints);
        return;
      }
      code_token();
    }
  }

  void code_token() {
    const std::size_t behind = after_space(text_, at_);
    if (behind != at_) return skip_to(behind);
    const char c = text_[at_];
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < text_.size() && is_name_part(text_[end])) ++end;
      add(TokenKind::name, std::string(text_.substr(at_, end - at_)));
      return skip_to(end);
    }
    if (c == '\'' || c == '"') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != c) end += text_[end] == '\\' ? 2 : 1;
      if (end >= text_.size()) syntax_error(line_, "a string without end");
      add(TokenKind::string, unescape(text_.substr(at_ + 1, end - at_ - 1), line_));
      return skip_to(end + 1);
    }
    symbol();
  }

  void symbol() {
    static constexpr std::array<std::string_view, 26> kSymbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(kSymbols.begin(), kSymbols.end(),
                                     [&](std::string_view symbol) { return sees(symbol); });
    if (found == kSymbols.end()) {
      std::size_t end = at_;
      next_character(text_, end);
      syntax_error(line_, fmt::format("the character '{}' in a tag",
                                      printable(text_.substr(at_, end - at_))));
    }
    balance(found->front());
    add(TokenKind::symbol, std::string(*found));
    at_ += found->size();
  }

  // Ends of tags are none inside brackets.
  void balance(char c) {
    if (c == '(' || c == '[' || c == '{') {
      brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (!brackets_.ends_with(c)) syntax_error(line_, fmt::format("an unexpected '{}'", c));
      brackets_.pop_back();
    }
  }

  // Digits with single underscores between, from `at` on; where they end.
  std::size_t digits_end(std::size_t at, bool (*is_part)(char)) const {
    while (at < text_.size() &&
           (is_part(text_[at]) || (text_[at] == '_' && at + 1 < text_.size() &&
                                   is_part(text_[at + 1]) && is_part(text_[at - 1])))) {
      ++at;
    }
    return at;
  }

  // Behind a real number that starts here, or at_ if none does: it needs a fraction or an exponent.
  std::size_t real_end() const {
    if (at_ > 0 && text_[at_ - 1] == '.') return at_;
    const auto digit_at = [&](std::size_t at) { return at < text_.size() && is_digit(text_[at]); };
    std::size_t end = digits_end(at_, is_digit);
    bool real = false;
    if (end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
      end = digits_end(end + 1, is_digit);
      real = true;
    }
    if (end < text_.size() && (text_[end] | 0x20) == 'e') {
      const std::size_t sign =
          end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 1 : 0;
      if (digit_at(end + 1 + sign)) return digits_end(end + 1 + sign, is_digit);
    }
    return real ? end : at_;
  }

  static std::string without_underscores(std::string_view text) {
    std::string out(text);
    out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
    return out;
  }

  void number() {
    if (const std::size_t end = real_end(); end != at_) {
      const std::string digits = without_underscores(text_.substr(at_, end - at_));
      double value = 0;
      const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (result.ec != std::errc{}) {
        unsupported_syntax(line_, fmt::format("the number {}", printable(digits, 40)));
      }
      add(TokenKind::real);
      tokens_.back().real = value;
      return skip_to(end);
    }
    integer();
  }

  void integer() {
    int base = 10;
    std::size_t begin = at_, end = at_;
    const char letter = text_[at_] == '0' && at_ + 1 < text_.size()
                            ? static_cast<char>(text_[at_ + 1] | 0x20)
                            : ' ';
    bool (*is_part)(char) = is_digit;
    if (letter == 'x') {
      base = 16;
      is_part = [](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
    } else if (letter == 'o') {
      base = 8;
      is_part = [](char c) { return c >= '0' && c <= '7'; };
    } else if (letter == 'b') {
      base = 2;
      is_part = [](char c) { return c == '0' || c == '1'; };
    }
    if (base != 10) {
      begin = at_ + 2 + (at_ + 2 < text_.size() && text_[at_ + 2] == '_' ? 1 : 0);
      end = begin < text_.size() && is_part(text_[begin]) ? digits_end(begin, is_part) : begin;
      if (end == begin) {  // "0" and a name behind it
        base = 10;
        begin = at_;
      }
    }
    if (base == 10) {
      // A number that starts with 0 is zeros alone.
      end = text_[at_] == '0' ? digits_end(at_, [](char c) { return c == '0'; })
                              : digits_end(at_, is_digit);
    }
    const std::string digits = without_underscores(text_.substr(begin, end - begin));
    std::int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec != std::errc{}) unsupported_syntax(line_, "an integer of more than 64 bits");
    add(TokenKind::integer);
    tokens_.back().integer = value;
    skip_to(end);
  }

  std::string source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool starts_line_ = true;  // whether what precedes at_ is a line end or the start
  std::string brackets_;     // the closing brackets that are due
  std::vector<Token> tokens_;
};

}  // namespace

void syntax_error(std::size_t line, std::string_view what) {
  throw Error(ErrorCode::bad_model,
              fmt::format("the chat template is not valid at line {}: {}", line, what));
}

void unsupported_syntax(std::size_t line, std::string_view construct) {
  throw Error(
      ErrorCode::bad_model,
      fmt::format("the chat template uses {} at line {}, which is not supported", construct, line));
}

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    throw Error(ErrorCode::bad_model,
                fmt::format("the chat template has {} bytes; at most {} are supported",
                            source.size(), kMaxTemplateBytes));
  }
  if (valid_utf8_prefix(source) != source.size()) {
    throw Error(ErrorCode::bad_model, fmt::format("the chat template is not valid UTF-8 at byte {}",
                                                  valid_utf8_prefix(source)));
  }
  return Lexer(with_plain_lines(source)).run();
}

}  // namespace lockstep::jinja
