// A walk over a template's tokens, with the one guard against tags and parentheses nested so deep
// that parsing them would run out of stack.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/jinja/limits.h"
#include "runtime/chat/jinja/token.h"

namespace lockstep::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const noexcept { return tokens_[at_]; }
  const Token& ahead() const noexcept { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  std::size_t line() const noexcept { return current().line; }

  // The current token; moves on. The end is never passed.
  Token next() {
    if (current().kind == TokenKind::end) return current();
    return std::move(tokens_[at_++]);
  }
  bool skip_symbol(std::string_view spelling) {
    if (!current().is_symbol(spelling)) return false;
    ++at_;
    return true;
  }
  bool skip_name(std::string_view spelling) {
    if (!current().is_name(spelling)) return false;
    ++at_;
    return true;
  }
  void expect_symbol(std::string_view spelling) {
    if (!skip_symbol(spelling)) unexpected(fmt::format("'{}'", spelling));
  }
  void expect_name(std::string_view spelling) {
    if (!skip_name(spelling)) unexpected(fmt::format("'{}'", spelling));
  }
  std::string expect_any_name() {
    if (current().kind != TokenKind::name) unexpected("a name");
    return next().text;
  }
  void expect(TokenKind kind, std::string_view what) {
    if (current().kind != kind) unexpected(what);
    next();
  }
  [[noreturn]] void unexpected(std::string_view wanted) const;

  // Counts a level of nesting for as long as it lives.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > kMaxNesting) {
        unsupported_syntax(stream_.line(),
                           fmt::format("more than {} levels of nesting", kMaxNesting));
      }
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --stream_.depth_; }

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace lockstep::jinja
