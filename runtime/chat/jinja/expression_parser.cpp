// See expression_parser.h. The grammar is Jinja's own, precedence and oddities included: filters
// bind tighter than arithmetic, a test takes a bare operand, strings side by side are one.
#include "runtime/chat/jinja/expression_parser.h"

#include <algorithm>
#include <optional>

#include "runtime/chat/jinja/unicode.h"
#include "runtime/printable.h"

namespace lockstep::jinja {
namespace {

bool is_constant_name(std::string_view name) noexcept {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

std::string spelled(const Token& token) {
  switch (token.kind) {
    case TokenKind::name:
    case TokenKind::symbol:
      return "'" + token.text + "'";
    case TokenKind::string:
      return "a string";
    case TokenKind::integer:
    case TokenKind::real:
      return "a number";
    case TokenKind::end:
      return "the end of the template";
    default:
      return "the end of the tag";
  }
}

}  // namespace

void TokenStream::unexpected(std::string_view wanted) const {
  syntax_error(line(), fmt::format("{} where {} is expected", spelled(current()), wanted));
}

template <typename Node>
ExpressionPtr ExpressionParser::make(std::size_t line, Node node) {
  auto expression = std::make_unique<Expression>();
  expression->line = line;
  expression->node = std::move(node);
  for_each_child(*expression, [&](const Expression& child) {
    expression->height = std::max(expression->height, child.height + 1);
  });
  if (expression->height > kMaxNesting) {
    unsupported_syntax(line, fmt::format("an expression of more than {} levels", kMaxNesting));
  }
  return expression;
}

ExpressionPtr ExpressionParser::expression(bool conditional) {
  const TokenStream::Level level(tokens_);
  return conditional ? conditional_expression() : logic(false);
}

ExpressionPtr ExpressionParser::conditional_expression() {
  const std::size_t line = tokens_.line();
  ExpressionPtr value = logic(false);
  while (tokens_.skip_name("if")) {
    ExpressionPtr condition = logic(false);
    ExpressionPtr otherwise;
    if (tokens_.skip_name("else")) otherwise = expression();
    value = make(line, Conditional{std::move(value), std::move(condition), std::move(otherwise)});
  }
  return value;
}

ExpressionPtr ExpressionParser::logic(bool is_and) {
  const std::size_t line = tokens_.line();
  const auto operand = [&] { return is_and ? negation() : logic(true); };
  ExpressionPtr first = operand();
  Logic all{is_and, {}};
  while (tokens_.skip_name(is_and ? "and" : "or")) {
    if (all.operands.empty()) all.operands.push_back(std::move(first));
    all.operands.push_back(operand());
  }
  return all.operands.empty() ? std::move(first) : make(line, std::move(all));
}

ExpressionPtr ExpressionParser::negation() {
  const std::size_t line = tokens_.line();
  if (!tokens_.skip_name("not")) return comparison();
  const TokenStream::Level level(tokens_);
  return make(line, Unary{UnaryOp::logical_not, negation()});
}

ExpressionPtr ExpressionParser::comparison() {
  const std::size_t line = tokens_.line();
  ExpressionPtr first = sum();
  Comparison all{nullptr, {}};
  for (;;) {
    std::optional<CompareOp> op;
    if (tokens_.skip_symbol("==")) {
      op = CompareOp::equal;
    } else if (tokens_.skip_symbol("!=")) {
      op = CompareOp::unequal;
    } else if (tokens_.skip_symbol("<")) {
      op = CompareOp::less;
    } else if (tokens_.skip_symbol("<=")) {
      op = CompareOp::less_equal;
    } else if (tokens_.skip_symbol(">")) {
      op = CompareOp::greater;
    } else if (tokens_.skip_symbol(">=")) {
      op = CompareOp::greater_equal;
    } else if (tokens_.skip_name("in")) {
      op = CompareOp::in;
    } else if (tokens_.current().is_name("not") && tokens_.ahead().is_name("in")) {
      tokens_.next();
      tokens_.next();
      op = CompareOp::not_in;
    }
    if (!op) break;
    all.rest.emplace_back(*op, sum());
  }
  if (all.rest.empty()) return first;
  all.first = std::move(first);
  return make(line, std::move(all));
}

ExpressionPtr ExpressionParser::sum() {
  const std::size_t line = tokens_.line();
  ExpressionPtr first = concatenation();
  Arithmetic all{nullptr, {}};
  for (;;) {
    const bool add = tokens_.skip_symbol("+");
    if (!add && !tokens_.skip_symbol("-")) break;
    all.rest.emplace_back(add ? BinaryOp::add : BinaryOp::subtract, concatenation());
  }
  if (all.rest.empty()) return first;
  all.first = std::move(first);
  return make(line, std::move(all));
}

ExpressionPtr ExpressionParser::concatenation() {
  const std::size_t line = tokens_.line();
  ExpressionPtr first = product();
  Concat all;
  while (tokens_.skip_symbol("~")) {
    if (all.parts.empty()) all.parts.push_back(std::move(first));
    all.parts.push_back(product());
  }
  return all.parts.empty() ? std::move(first) : make(line, std::move(all));
}

ExpressionPtr ExpressionParser::product() {
  const std::size_t line = tokens_.line();
  ExpressionPtr first = power();
  Arithmetic all{nullptr, {}};
  for (;;) {
    BinaryOp op = BinaryOp::multiply;
    if (tokens_.skip_symbol("/")) {
      op = BinaryOp::divide;
    } else if (tokens_.skip_symbol("//")) {
      op = BinaryOp::floor_divide;
    } else if (tokens_.skip_symbol("%")) {
      op = BinaryOp::modulo;
    } else if (!tokens_.skip_symbol("*")) {
      break;
    }
    all.rest.emplace_back(op, power());
  }
  if (all.rest.empty()) return first;
  all.first = std::move(first);
  return make(line, std::move(all));
}

ExpressionPtr ExpressionParser::power() {
  const std::size_t line = tokens_.line();
  ExpressionPtr first = unary();
  Arithmetic all{nullptr, {}};
  while (tokens_.skip_symbol("**")) all.rest.emplace_back(BinaryOp::power, unary());
  if (all.rest.empty()) return first;
  all.first = std::move(first);
  return make(line, std::move(all));
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const std::size_t line = tokens_.line();
  ExpressionPtr value;
  const bool minus = tokens_.skip_symbol("-");
  if (minus || tokens_.skip_symbol("+")) {
    const TokenStream::Level level(tokens_);
    value = make(line, Unary{minus ? UnaryOp::negate : UnaryOp::plus, unary(false)});
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_.current();
  const std::size_t line = token.line;
  if (token.kind == TokenKind::name) return name_or_constant();
  if (token.kind == TokenKind::string) return string_constant();
  if (token.kind == TokenKind::integer) return constant(line, Value(tokens_.next().integer));
  if (token.kind == TokenKind::real) return constant(line, Value(tokens_.next().real));
  if (token.is_symbol("(")) return parenthesis();
  if (token.is_symbol("[")) return list_display();
  if (token.is_symbol("{")) return dict_display();
  tokens_.unexpected("an expression");
}

ExpressionPtr ExpressionParser::constant(std::size_t line, Value value) {
  return make(line, Constant{value, nullptr});
}

ExpressionPtr ExpressionParser::name_or_constant() {
  Token token = tokens_.next();
  const std::string& name = token.text;
  if (name == "none" || name == "None") return constant(token.line, Value());
  if (is_constant_name(name)) return constant(token.line, Value(name == "true" || name == "True"));
  return make(token.line, Name{std::move(token.text)});
}

ExpressionPtr ExpressionParser::string_constant() {
  const std::size_t line = tokens_.line();
  auto text = std::make_unique<String>();
  while (tokens_.current().kind == TokenKind::string) text->text += tokens_.next().text;
  text->length = count_characters(text->text);
  add_word(text->text);
  const Value value(text.get());
  return make(line, Constant{value, std::move(text)});
}

ExpressionPtr ExpressionParser::parenthesis() {
  const TokenStream::Level level(tokens_);
  const std::size_t line = tokens_.line();
  tokens_.expect_symbol("(");
  if (tokens_.skip_symbol(")")) return make(line, ListDisplay{{}, true});
  ExpressionPtr value = tuple();
  tokens_.expect_symbol(")");
  return value;
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  const Token& token = tokens_.current();
  return token.kind == TokenKind::print_end || token.kind == TokenKind::block_end ||
         token.is_symbol(")") || (!end.empty() && token.is_name(end));
}

ExpressionPtr ExpressionParser::tuple(bool conditional, std::string_view end) {
  const std::size_t line = tokens_.line();
  ListDisplay items{{}, true};
  bool commas = false;
  for (;;) {
    if (at_tuple_end(end)) break;
    items.items.push_back(expression(conditional));
    if (!tokens_.skip_symbol(",")) break;
    commas = true;
  }
  if (items.items.empty()) tokens_.unexpected("an expression");
  return commas ? make(line, std::move(items)) : std::move(items.items.front());
}

ExpressionPtr ExpressionParser::list_display() {
  const TokenStream::Level level(tokens_);
  const std::size_t line = tokens_.line();
  tokens_.expect_symbol("[");
  ListDisplay list;
  while (!tokens_.current().is_symbol("]")) {
    if (!list.items.empty()) {
      tokens_.expect_symbol(",");
      if (tokens_.current().is_symbol("]")) break;
    }
    list.items.push_back(expression());
  }
  tokens_.expect_symbol("]");
  return make(line, std::move(list));
}

ExpressionPtr ExpressionParser::dict_display() {
  const TokenStream::Level level(tokens_);
  const std::size_t line = tokens_.line();
  tokens_.expect_symbol("{");
  DictDisplay dict;
  while (!tokens_.current().is_symbol("}")) {
    if (!dict.entries.empty()) {
      tokens_.expect_symbol(",");
      if (tokens_.current().is_symbol("}")) break;
    }
    ExpressionPtr key = expression();
    tokens_.expect_symbol(":");
    dict.entries.emplace_back(std::move(key), expression());
  }
  tokens_.expect_symbol("}");
  return make(line, std::move(dict));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  for (;;) {
    const Token& token = tokens_.current();
    if (token.is_symbol(".")) {
      value = attribute(std::move(value));
    } else if (token.is_symbol("[")) {
      value = subscript(std::move(value));
    } else if (token.is_symbol("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr object) {
  const std::size_t line = tokens_.line();
  tokens_.expect_symbol(".");
  if (tokens_.current().kind == TokenKind::integer) {
    ExpressionPtr key = constant(line, Value(tokens_.next().integer));
    return make(line, ItemAccess{std::move(object), std::move(key)});
  }
  std::string name = tokens_.expect_any_name();
  add_word(name);
  return make(line, AttributeAccess{std::move(object), std::move(name)});
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const TokenStream::Level level(tokens_);
  const std::size_t line = tokens_.line();
  tokens_.expect_symbol("[");
  const auto at_end = [&] {
    return tokens_.current().is_symbol("]") || tokens_.current().is_symbol(",") ||
           tokens_.current().is_symbol(":");
  };
  ExpressionPtr first;
  if (!tokens_.current().is_symbol(":")) first = expression();
  SliceAccess slice{nullptr, nullptr, nullptr, nullptr};
  const bool is_slice = tokens_.skip_symbol(":");
  if (is_slice && !at_end()) slice.stop = expression();
  if (is_slice && tokens_.skip_symbol(":") && !at_end()) slice.step = expression();
  if (tokens_.current().is_symbol(",")) {
    unsupported_syntax(line, "an index of several parts");
  }
  tokens_.expect_symbol("]");
  if (!is_slice) return make(line, ItemAccess{std::move(object), std::move(first)});
  slice.object = std::move(object);
  slice.start = std::move(first);
  return make(line, std::move(slice));
}

CallArguments ExpressionParser::arguments() {
  const TokenStream::Level level(tokens_);
  tokens_.expect_symbol("(");
  CallArguments result;
  bool comma = true;
  while (!tokens_.current().is_symbol(")")) {
    if (!comma) tokens_.unexpected("',' or ')'");
    if (tokens_.current().is_symbol("*") || tokens_.current().is_symbol("**")) {
      unsupported_syntax(tokens_.line(), "'*' in the arguments of a call");
    }
    const bool named = tokens_.current().kind == TokenKind::name && tokens_.ahead().is_symbol("=");
    if (named) {
      const std::size_t line = tokens_.line();
      std::string name = tokens_.next().text;
      tokens_.expect_symbol("=");
      for (const auto& [other, value] : result.named) {
        if (other == name) syntax_error(line, fmt::format("the argument '{}' twice", name));
      }
      if (result.named.size() == kMaxNamed) {
        unsupported_syntax(line, fmt::format("more than {} named arguments", kMaxNamed));
      }
      result.named.emplace_back(std::move(name), expression());
    } else {
      if (!result.named.empty()) tokens_.unexpected("a named argument");
      result.positional.push_back(expression());
    }
    comma = tokens_.skip_symbol(",");
  }
  tokens_.expect_symbol(")");
  return result;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr function) {
  const std::size_t line = tokens_.line();
  return make(line, Call{std::move(function), arguments()});
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  for (;;) {
    const Token& token = tokens_.current();
    if (token.is_symbol("|")) {
      tokens_.next();
      value = filter(std::move(value));
    } else if (token.is_name("is")) {
      value = test(std::move(value));
    } else if (token.is_symbol("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_any_name();
  while (tokens_.skip_symbol(".")) name += "." + tokens_.expect_any_name();
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  const std::size_t line = tokens_.line();
  FilterCall call{std::move(value), dotted_name(), nullptr, {}};
  call.filter = find_filter(call.name);
  if (!call.filter) unsupported_syntax(line, fmt::format("the filter '{}'", call.name));
  if (tokens_.current().is_symbol("(")) call.arguments = arguments();
  return make(line, std::move(call));
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const std::size_t line = tokens_.line();
  tokens_.expect_name("is");
  const bool negated = tokens_.skip_name("not");
  TestCall call{std::move(value), dotted_name(), nullptr, {}};
  call.test = find_test(call.name);
  if (!call.test) unsupported_syntax(line, fmt::format("the test '{}'", call.name));
  const Token& token = tokens_.current();
  const bool operand = (token.kind == TokenKind::name && !token.is_name("else") &&
                        !token.is_name("or") && !token.is_name("and")) ||
                       token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                       token.kind == TokenKind::real || token.is_symbol("[") ||
                       token.is_symbol("{");
  if (token.is_symbol("(")) {
    call.arguments = arguments();
  } else if (operand) {
    if (token.is_name("is")) syntax_error(line, "a test of a test");
    call.arguments.positional.push_back(postfix(primary()));
  }
  ExpressionPtr result = make(line, std::move(call));
  return negated ? make(line, Unary{UnaryOp::logical_not, std::move(result)}) : std::move(result);
}

ExpressionPtr ExpressionParser::filter_chain(bool started) {
  ExpressionPtr chain;
  while (started || tokens_.skip_symbol("|")) {
    started = false;
    chain = filter(std::move(chain));
  }
  return chain;
}

std::string ExpressionParser::assignable_name() {
  const std::size_t line = tokens_.line();
  std::string name = tokens_.expect_any_name();
  if (is_constant_name(name)) syntax_error(line, "an assignment to a constant");
  return name;
}

Target ExpressionParser::primary_target() { return as_target(*primary()); }

Target ExpressionParser::as_target(const Expression& expression) {
  Target target;
  target.line = expression.line;
  if (const auto* name = std::get_if<Name>(&expression.node)) {
    target.name = name->name;
    return target;
  }
  const auto* list = std::get_if<ListDisplay>(&expression.node);
  if (!list || !list->tuple) syntax_error(expression.line, "an assignment to what is no name");
  target.is_tuple = true;
  for (const ExpressionPtr& item : list->items) target.parts.push_back(as_target(*item));
  return target;
}

Target ExpressionParser::target(bool allow_attribute, std::string_view end) {
  const std::size_t line = tokens_.line();
  if (allow_attribute && tokens_.ahead().is_symbol(".")) {
    Target target;
    target.line = line;
    target.name = tokens_.expect_any_name();
    tokens_.expect_symbol(".");
    target.attribute = tokens_.expect_any_name();
    return target;
  }
  Target tuple;
  tuple.line = line;
  for (;;) {
    if (at_tuple_end(end)) break;
    tuple.parts.push_back(primary_target());
    if (!tokens_.skip_symbol(",")) break;
    tuple.is_tuple = true;
  }
  if (tuple.parts.empty()) tokens_.unexpected("a name");
  return tuple.is_tuple ? std::move(tuple) : std::move(tuple.parts.front());
}

}  // namespace lockstep::jinja
