// Running a template's syntax tree. It reads the tree and what the rendering was given, writes one
// text, and touches nothing else: templates have no side effects because there is nothing here to
// have one on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/jinja/arguments.h"
#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/strftime.h"
#include "runtime/chat/jinja/syntax.h"
#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

class Interpreter {
 public:
  // `variables`: what the template can read by name.
  Interpreter(Workspace& workspace, const Dict& variables, std::optional<Date> date)
      : workspace_(workspace), variables_(variables), date_(date) {}

  std::string render(const SyntaxTree& tree);

  Value evaluate(const Expression& expression);

 private:
  enum class Flow : std::uint8_t { normal, leave_loop, next_item };

  // Of expressions (evaluate.cpp).
  Value value_of(const Constant& node);
  Value value_of(const Name& node);
  Value value_of(const ListDisplay& node);
  Value value_of(const DictDisplay& node);
  Value value_of(const AttributeAccess& node);
  Value value_of(const ItemAccess& node);
  Value value_of(const SliceAccess& node);
  Value value_of(const Call& node);
  Value value_of(const FilterCall& node);
  Value value_of(const TestCall& node);
  Value value_of(const Unary& node);
  Value value_of(const Arithmetic& node);
  Value value_of(const Concat& node);
  Value value_of(const Comparison& node);
  Value value_of(const Logic& node);
  Value value_of(const Conditional& node);
  Value optional_value(const ExpressionPtr& expression);
  Arguments arguments_of(const CallArguments& arguments);
  Value call(Value function, const Arguments& arguments);
  Value call_macro(const Callable& function, const Arguments& arguments);
  void bind(const Macro& macro, const Arguments& arguments);
  // The text of a block through its chain of filters.
  Value filtered(const Expression& chain, Value text);
  // `caller`: what is passed to the function besides the arguments written.
  Value call_with(const Call& node, Value caller);

  // Of statements (interpreter.cpp).
  Flow run(const Body& body);
  Flow run_statement(const Text& node);
  Flow run_statement(const Print& node);
  Flow run_statement(const If& node);
  Flow run_statement(const For& node);
  Flow run_statement(const Set& node);
  Flow run_statement(const SetBlock& node);
  Flow run_statement(const MacroDefinition& node);
  Flow run_statement(const CallBlock& node);
  Flow run_statement(const FilterBlock& node);
  Flow run_statement(const With& node);
  Flow run_statement(const Break& node);
  Flow run_statement(const Continue& node);

  Loop& start_loop(const For& node);
  bool passes(const For& node, Value item);
  void write(std::string_view text);
  // What a call or filter block gives: text, or an error.
  void write_block(Value text);
  Value& variable(const Place& place);
  void assign(const Target& target, Value value);
  void unpack(const Target& target, Value value);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  void forget(const Target& target);
  Value context_value(const std::string& name);
  Value macro_value(const Macro& macro);

  class Deeper;   // counts a level of recursion for as long as it lives
  class Capture;  // collects what is written in a text of its own for as long as it lives

  Workspace& workspace_;
  const Dict& variables_;
  std::optional<Date> date_;
  Activation* activation_ = nullptr;
  std::string* out_ = nullptr;
  int depth_ = 0;
};

}  // namespace lockstep::jinja
