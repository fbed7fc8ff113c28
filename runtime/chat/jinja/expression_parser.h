// The grammar of expressions. Internal to the parser.
#pragma once

#include <string_view>

#include "runtime/chat/jinja/syntax.h"
#include "runtime/chat/jinja/token_stream.h"

namespace lockstep::jinja {

class ExpressionParser {
 public:
  // Collects the words (see SyntaxTree) into `words`.
  ExpressionParser(TokenStream& tokens, std::vector<std::string>& words)
      : tokens_(tokens), words_(words) {}

  // With or without "a if b else c" at its outermost.
  ExpressionPtr expression(bool conditional = true);
  // An expression, or a tuple of several without parentheses. `end`: a keyword that ends it too.
  ExpressionPtr tuple(bool conditional = true, std::string_view end = {});
  // What `for` and `set` assign to. `end` as above; `allow_attribute` for ns.x.
  Target target(bool allow_attribute, std::string_view end = {});
  // A name that is no constant, such as true.
  std::string assignable_name();
  // The filters of a filter or set block, innermost with no value. `started`: no "|" in front.
  ExpressionPtr filter_chain(bool started);

 private:
  template <typename Node>
  ExpressionPtr make(std::size_t line, Node node);

  ExpressionPtr conditional_expression();
  ExpressionPtr logic(bool is_and);
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr constant(std::size_t line, Value value);
  ExpressionPtr string_constant();
  ExpressionPtr parenthesis();
  ExpressionPtr list_display();
  ExpressionPtr dict_display();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr attribute(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr call(ExpressionPtr function);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  CallArguments arguments();
  std::string dotted_name();
  Target primary_target();
  Target as_target(const Expression& expression);
  bool at_tuple_end(std::string_view end) const;
  // A word that the template knows of (see SyntaxTree).
  void add_word(const std::string& word) { words_.push_back(word); }

  TokenStream& tokens_;
  std::vector<std::string>& words_;
};

}  // namespace lockstep::jinja
