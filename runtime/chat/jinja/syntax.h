// The syntax tree of a template. Names are resolved to places (scopes.h) once, when it is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/chat/jinja/filters.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/value.h"

namespace lockstep::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// Where a variable lies: a slot of the Activation that many closures out.
struct Place {
  std::uint32_t hops = 0;
  std::uint32_t slot = 0;

  bool operator==(const Place&) const = default;
};

// What a scope does with a variable when it is entered.
struct EntryLoad {
  enum class From : std::uint8_t { nothing, outer, context };
  Place target;  // hops 0
  From from = From::nothing;
  Place outer;       // of From::outer
  std::string name;  // of From::context
};
using Scope = std::vector<EntryLoad>;

struct Constant {
  Value value;
  std::unique_ptr<String> text;  // what `value` points to, for a string
};
struct Name {
  std::string name;
  Place place = {};
};
struct ListDisplay {
  std::vector<ExpressionPtr> items;
  bool tuple = false;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct AttributeAccess {
  ExpressionPtr object;
  std::string name;
};
struct ItemAccess {
  ExpressionPtr object, key;
};
struct SliceAccess {
  ExpressionPtr object, start, stop, step;  // bounds may be null
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};
struct Call {
  ExpressionPtr function;
  CallArguments arguments;
};
struct FilterCall {
  ExpressionPtr value;  // null at the start of a filter block's chain: the block's text
  std::string name;
  Filter filter = nullptr;
  CallArguments arguments;
};
struct TestCall {
  ExpressionPtr value;
  std::string name;
  Test test = nullptr;
  CallArguments arguments;
};
enum class UnaryOp : std::uint8_t { negate, plus, logical_not };
struct Unary {
  UnaryOp op;
  ExpressionPtr operand;
};
// a + b - c, a * b / c or a ** b ** c, all from left to right.
struct Arithmetic {
  ExpressionPtr first;
  std::vector<std::pair<BinaryOp, ExpressionPtr>> rest;
};
struct Concat {
  std::vector<ExpressionPtr> parts;
};
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};
struct Logic {
  bool is_and;
  std::vector<ExpressionPtr> operands;
};
struct Conditional {
  ExpressionPtr value, condition, otherwise;  // otherwise may be null
};

struct Expression {
  std::size_t line = 1;
  int height = 1;  // of the tree below; bounded, so that walking it may recurse
  std::variant<Constant, Name, ListDisplay, DictDisplay, AttributeAccess, ItemAccess, SliceAccess,
               Call, FilterCall, TestCall, Unary, Arithmetic, Concat, Comparison, Logic,
               Conditional>
      node;
};

// Calls `visit` for every expression right below this one, in the order of evaluation.
template <typename Visit>
void for_each_child(const Expression& expression, Visit&& visit);

// What a value is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::size_t line = 1;
  std::string name;
  std::string attribute;  // of a namespace; empty if it is none
  std::vector<Target> parts;
  bool is_tuple = false;
  Place place = {};
};

struct Statement;
using Body = std::vector<Statement>;

struct Text {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr items, test;  // test may be null
  Body body, otherwise;
  Scope scope, test_scope, otherwise_scope;
  Target test_target;              // `target` as the test sees it
  std::optional<Place> loop = {};  // of the variable `loop`, if the body reads it
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // null, or a chain of FilterCall
  Body body;
  Scope scope;
};
// Also the body of a call block, which is a macro without a name.
struct Macro {
  struct Parameter {
    std::string name;
    ExpressionPtr fallback;  // null if it has none
    Place place = {};
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  Scope scope;
  std::uint32_t slots = 0;                                      // of its Activation
  std::optional<Place> caller = {}, kwargs = {}, varargs = {};  // if the body reads them
  bool takes_caller = false;  // reads `caller`, as a parameter of its own or not
};
struct MacroDefinition {
  Macro macro;
  Target target;
};
struct CallBlock {
  ExpressionPtr call;  // a Call; null for {% generation %}, which just writes its body
  Macro body;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
  Scope scope;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Body body;
  Scope scope;
};
struct Break {};
struct Continue {};

struct Statement {
  std::size_t line = 1;
  std::variant<Text, Print, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock, With,
               Break, Continue>
      node;
};

struct SyntaxTree {
  Body body;
  Scope scope;
  std::uint32_t slots = 0;
  std::vector<std::string> context_names;  // variables read from what a rendering is given
  std::vector<std::string> words;          // attribute names and string literals
};

namespace detail {

template <typename Visit>
struct ChildVisitor {
  Visit& visit;

  void one(const ExpressionPtr& child) const {
    if (child) visit(*child);
  }
  void arguments(const CallArguments& arguments) const {
    for (const ExpressionPtr& argument : arguments.positional) one(argument);
    for (const auto& [name, argument] : arguments.named) one(argument);
  }

  void operator()(const Constant&) const {}
  void operator()(const Name&) const {}
  void operator()(const ListDisplay& list) const {
    for (const ExpressionPtr& item : list.items) one(item);
  }
  void operator()(const DictDisplay& dict) const {
    for (const auto& [key, value] : dict.entries) one(key), one(value);
  }
  void operator()(const AttributeAccess& access) const { one(access.object); }
  void operator()(const ItemAccess& access) const { one(access.object), one(access.key); }
  void operator()(const SliceAccess& access) const {
    one(access.object), one(access.start), one(access.stop), one(access.step);
  }
  void operator()(const Call& call) const { one(call.function), arguments(call.arguments); }
  void operator()(const FilterCall& call) const { one(call.value), arguments(call.arguments); }
  void operator()(const TestCall& call) const { one(call.value), arguments(call.arguments); }
  void operator()(const Unary& unary) const { one(unary.operand); }
  void operator()(const Arithmetic& arithmetic) const {
    one(arithmetic.first);
    for (const auto& [op, operand] : arithmetic.rest) one(operand);
  }
  void operator()(const Concat& concat) const {
    for (const ExpressionPtr& part : concat.parts) one(part);
  }
  void operator()(const Comparison& comparison) const {
    one(comparison.first);
    for (const auto& [op, operand] : comparison.rest) one(operand);
  }
  void operator()(const Logic& logic) const {
    for (const ExpressionPtr& operand : logic.operands) one(operand);
  }
  void operator()(const Conditional& conditional) const {
    one(conditional.condition), one(conditional.value), one(conditional.otherwise);
  }
};

}  // namespace detail

template <typename Visit>
void for_each_child(const Expression& expression, Visit&& visit) {
  std::visit(detail::ChildVisitor<Visit>{visit}, expression.node);
}

}  // namespace lockstep::jinja
