// The grammar of tags. Expressions are in expression_parser.cpp.
#include "runtime/chat/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

#include "runtime/chat/jinja/expression_parser.h"
#include "runtime/chat/jinja/scopes.h"
#include "runtime/printable.h"

namespace lockstep::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  StatementParser(TokenStream& tokens, std::vector<std::string>& words)
      : tokens_(tokens), expressions_(tokens, words) {}

  // Statements up to a tag that one of `ends` names, or to the end of the template if there are
  // none. The name is left for the caller.
  Body body(Names ends);

 private:
  Statement statement();
  // "%}", the body, and the name of the end tag, which is returned.
  std::string block(Names ends);
  Body closed_block(Names ends, std::string* end = nullptr);

  Statement parse_if();
  Statement parse_for();
  Statement parse_set();
  Statement parse_macro();
  Statement parse_call();
  Statement parse_filter();
  Statement parse_with();
  Statement parse_generation();
  Statement parse_loop_control(bool is_break);
  void parse_print(Body& body);
  void signature(Macro& macro);
  Body function_body(std::string_view end);

  TokenStream& tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around this place, within the macro
};

bool is_among(const Token& token, Names names) {
  return token.kind == TokenKind::name &&
         std::find(names.begin(), names.end(), token.text) != names.end();
}

Body StatementParser::body(Names ends) {
  Body body;
  for (;;) {
    const Token& token = tokens_.current();
    const std::size_t line = token.line;
    if (token.kind == TokenKind::end) {
      if (ends.size() == 0) return body;
      syntax_error(line, fmt::format("the template ends before the tag '{}'", *(ends.end() - 1)));
    }
    if (token.kind == TokenKind::data) {
      body.push_back({line, Text{tokens_.next().text}});
    } else if (token.kind == TokenKind::print_begin) {
      tokens_.next();
      body.push_back({line, Print{expressions_.tuple()}});
      tokens_.expect(TokenKind::print_end, "'}}'");
    } else {
      tokens_.expect(TokenKind::block_begin, "a tag");
      if (is_among(tokens_.current(), ends)) return body;
      if (tokens_.current().is_name("print")) {
        parse_print(body);
      } else {
        body.push_back(statement());
      }
      tokens_.expect(TokenKind::block_end, "'%}'");
    }
  }
}

Body StatementParser::closed_block(Names ends, std::string* end) {
  const TokenStream::Level level(tokens_);
  tokens_.skip_symbol(":");  // allowed, as in Python
  tokens_.expect(TokenKind::block_end, "'%}'");
  Body result = body(ends);
  std::string name = tokens_.next().text;
  if (end) *end = std::move(name);
  return result;
}

Statement StatementParser::statement() {
  const std::size_t line = tokens_.line();
  const std::string name = tokens_.expect_any_name();
  Statement result;
  if (name == "if") {
    result = parse_if();
  } else if (name == "for") {
    result = parse_for();
  } else if (name == "set") {
    result = parse_set();
  } else if (name == "macro") {
    result = parse_macro();
  } else if (name == "call") {
    result = parse_call();
  } else if (name == "filter") {
    result = parse_filter();
  } else if (name == "with") {
    result = parse_with();
  } else if (name == "generation") {
    result = parse_generation();
  } else if (name == "break" || name == "continue") {
    result = parse_loop_control(name == "break");
  } else {
    for (const std::string_view end : {"elif", "else", "endif", "endfor", "endset", "endmacro",
                                       "endcall", "endfilter", "endwith", "endgeneration"}) {
      if (name == end) syntax_error(line, fmt::format("the tag '{}' without its start", name));
    }
    unsupported_syntax(line, fmt::format("the tag '{}'", name));
  }
  result.line = line;
  return result;
}

Statement StatementParser::parse_if() {
  If all;
  for (std::string end = "elif"; end == "elif";) {
    ExpressionPtr condition = expressions_.tuple(false);
    Body body = closed_block({"elif", "else", "endif"}, &end);
    all.branches.emplace_back(std::move(condition), std::move(body));
    if (end == "else") all.otherwise = closed_block({"endif"});
  }
  return {1, std::move(all)};
}

Statement StatementParser::parse_for() {
  For loop;
  loop.target = expressions_.target(false, "in");
  tokens_.expect_name("in");
  loop.items = expressions_.tuple(false, "recursive");
  if (tokens_.skip_name("if")) loop.test = expressions_.expression();
  if (tokens_.current().is_name("recursive")) {
    unsupported_syntax(tokens_.line(), "a recursive loop");
  }
  std::string end;
  ++loops_;
  loop.body = closed_block({"else", "endfor"}, &end);
  --loops_;
  if (end == "else") loop.otherwise = closed_block({"endfor"});
  return {1, std::move(loop)};
}

Statement StatementParser::parse_set() {
  Target target = expressions_.target(true);
  if (tokens_.skip_symbol("=")) return {1, Set{std::move(target), expressions_.tuple()}};
  ExpressionPtr filter = expressions_.filter_chain(false);
  Body body = closed_block({"endset"});
  return {1, SetBlock{std::move(target), std::move(filter), std::move(body), {}}};
}

void StatementParser::signature(Macro& macro) {
  tokens_.expect_symbol("(");
  while (!tokens_.current().is_symbol(")")) {
    if (!macro.parameters.empty()) tokens_.expect_symbol(",");
    const std::size_t line = tokens_.line();
    std::string name = expressions_.assignable_name();
    for (const Macro::Parameter& other : macro.parameters) {
      if (other.name == name) syntax_error(line, fmt::format("the parameter '{}' twice", name));
    }
    ExpressionPtr fallback;
    if (tokens_.skip_symbol("=")) {
      fallback = expressions_.expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      syntax_error(line, "a parameter without a default behind one with a default");
    }
    if (macro.parameters.size() == kMaxNamed) {
      unsupported_syntax(line, fmt::format("more than {} parameters", kMaxNamed));
    }
    macro.parameters.push_back({std::move(name), std::move(fallback)});
  }
  tokens_.expect_symbol(")");
}

Body StatementParser::function_body(std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  Body result = closed_block({end});
  loops_ = loops;
  return result;
}

Statement StatementParser::parse_macro() {
  MacroDefinition definition;
  definition.target.line = tokens_.line();
  definition.target.name = expressions_.assignable_name();
  definition.macro.name = definition.target.name;
  signature(definition.macro);
  definition.macro.body = function_body("endmacro");
  return {1, std::move(definition)};
}

Statement StatementParser::parse_call() {
  CallBlock block;
  if (tokens_.current().is_symbol("(")) signature(block.body);
  const std::size_t line = tokens_.line();
  block.call = expressions_.expression();
  if (!std::holds_alternative<Call>(block.call->node)) syntax_error(line, "a 'call' of no call");
  block.body.body = function_body("endcall");
  return {1, std::move(block)};
}

Statement StatementParser::parse_filter() {
  FilterBlock block;
  block.filter = expressions_.filter_chain(true);
  block.body = closed_block({"endfilter"});
  return {1, std::move(block)};
}

Statement StatementParser::parse_with() {
  With with;
  while (tokens_.current().kind != TokenKind::block_end) {
    if (!with.variables.empty()) tokens_.expect_symbol(",");
    Target target = expressions_.target(false);
    tokens_.expect_symbol("=");
    with.variables.emplace_back(std::move(target), expressions_.expression());
  }
  with.body = closed_block({"endwith"});
  return {1, std::move(with)};
}

// What the model's answer will be, for training; rendering writes it like anything else.
Statement StatementParser::parse_generation() {
  CallBlock block;
  block.body.body = function_body("endgeneration");
  return {1, std::move(block)};
}

Statement StatementParser::parse_loop_control(bool is_break) {
  if (loops_ == 0) {
    syntax_error(tokens_.line(),
                 fmt::format("'{}' outside a loop", is_break ? "break" : "continue"));
  }
  if (is_break) return {1, Break{}};
  return {1, Continue{}};
}

void StatementParser::parse_print(Body& body) {
  const std::size_t line = tokens_.line();
  tokens_.next();
  for (bool first = true; tokens_.current().kind != TokenKind::block_end; first = false) {
    if (!first) tokens_.expect_symbol(",");
    body.push_back({line, Print{expressions_.expression()}});
  }
}

}  // namespace

SyntaxTree parse(std::string_view source) {
  SyntaxTree tree;
  TokenStream tokens(tokenize(source));
  tree.body = StatementParser(tokens, tree.words).body({});
  resolve_names(tree);
  std::sort(tree.words.begin(), tree.words.end());
  tree.words.erase(std::unique(tree.words.begin(), tree.words.end()), tree.words.end());
  return tree;
}

}  // namespace lockstep::jinja
