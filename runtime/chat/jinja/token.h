// The pieces that a template is cut into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jinja {

enum class TokenKind : std::uint8_t {
  data,         // text between tags; `text` is what is left of it
  print_begin,  // {{
  print_end,    // }}
  block_begin,  // {%
  block_end,    // %}
  name,         // also keywords
  string,       // `text` is what it stands for
  integer,
  real,
  symbol,  // an operator or bracket, spelled in `text`
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t line = 1;
  std::string text;
  std::int64_t integer = 0;
  double real = 0;

  bool is_symbol(std::string_view spelling) const noexcept {
    return kind == TokenKind::symbol && text == spelling;
  }
  bool is_name(std::string_view spelling) const noexcept {
    return kind == TokenKind::name && text == spelling;
  }
};

// Cuts a template, with trim_blocks and lstrip_blocks on as chat templates are written for. Throws
// Error(bad_model) with the line for what no template may hold.
std::vector<Token> tokenize(std::string_view source);

// Throws Error(bad_model): "the chat template is not valid at line N: ...".
[[noreturn]] void syntax_error(std::size_t line, std::string_view what);
// Throws Error(bad_model): "the chat template uses ... at line N, which is not supported".
[[noreturn]] void unsupported_syntax(std::size_t line, std::string_view construct);

}  // namespace lockstep::jinja
