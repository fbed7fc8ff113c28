// Expressions, and calls of what they name.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/error.h"
#include "runtime/chat/jinja/access.h"
#include "runtime/chat/jinja/guards.h"
#include "runtime/chat/jinja/interpreter.h"
#include "runtime/chat/jinja/methods.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/printable.h"

namespace lockstep::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Deeper deeper(*this);
  workspace_.charge_steps();
  const std::size_t outer_line = std::exchange(workspace_.line, expression.line);
  const Value value = std::visit([&](const auto& node) { return value_of(node); }, expression.node);
  workspace_.line = outer_line;
  return value;
}

Value Interpreter::optional_value(const ExpressionPtr& expression) {
  return expression ? evaluate(*expression) : Value();
}

Value Interpreter::value_of(const Constant& node) { return node.value; }

Value Interpreter::value_of(const Name& node) {
  const Value value = variable(node.place);
  if (!value.is(Kind::missing)) return value;
  return workspace_.undefined(fmt::format("'{}' is not defined", printable(node.name)));
}

Value Interpreter::value_of(const ListDisplay& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) items.push_back(evaluate(*item));
  return node.tuple ? workspace_.tuple(std::move(items)) : workspace_.list(std::move(items));
}

Value Interpreter::value_of(const DictDisplay& node) {
  auto dict = std::make_unique<Dict>();
  for (const auto& [key, value] : node.entries) {
    const Value key_value = evaluate(*key);
    workspace_.set(*dict, key_value, evaluate(*value));
  }
  return workspace_.dict(std::move(dict));
}

Value Interpreter::value_of(const AttributeAccess& node) {
  return attribute(workspace_, evaluate(*node.object), node.name);
}

Value Interpreter::value_of(const ItemAccess& node) {
  const Value object = evaluate(*node.object);
  return item(workspace_, object, evaluate(*node.key));
}

Value Interpreter::value_of(const SliceAccess& node) {
  const Value object = evaluate(*node.object);
  const Value start = optional_value(node.start);
  const Value stop = optional_value(node.stop);
  return slice(workspace_, object, start, stop, optional_value(node.step));
}

Arguments Interpreter::arguments_of(const CallArguments& arguments) {
  Arguments result;
  for (const ExpressionPtr& argument : arguments.positional) {
    result.positional.push_back(evaluate(*argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    result.named.emplace_back(name, evaluate(*argument));
  }
  return result;
}

Value Interpreter::value_of(const Call& node) {
  const Value function = evaluate(*node.function);
  const auto* name = std::get_if<Name>(&node.function->node);
  if (name && name->name == "strftime_now" && function.is(Kind::undefined)) {
    throw Error(ErrorCode::usage,
                fmt::format("the chat template asks for the date at line {}, and none is set: set "
                            "one with --date YYYY-MM-DD",
                            workspace_.line));
  }
  return call(function, arguments_of(node.arguments));
}

Value Interpreter::call_with(const Call& node, Value caller) {
  const Value function = evaluate(*node.function);
  Arguments arguments = arguments_of(node.arguments);
  arguments.named.emplace_back("caller", caller);
  return call(function, arguments);
}

Value Interpreter::value_of(const FilterCall& node) {
  const Value value = evaluate(*node.value);
  return node.filter(workspace_, value, arguments_of(node.arguments));
}

Value Interpreter::filtered(const Expression& chain, Value text) {
  const auto& node = std::get<FilterCall>(chain.node);
  const Value value = node.value ? filtered(*node.value, text) : text;
  workspace_.line = chain.line;
  return node.filter(workspace_, value, arguments_of(node.arguments));
}

Value Interpreter::value_of(const TestCall& node) {
  const Value value = evaluate(*node.value);
  return Value(node.test(workspace_, value, arguments_of(node.arguments)));
}

Value Interpreter::value_of(const Unary& node) {
  const Value operand = evaluate(*node.operand);
  switch (node.op) {
    case UnaryOp::negate:
      return negate(workspace_, operand);
    case UnaryOp::plus:
      return plus(workspace_, operand);
    case UnaryOp::logical_not:
      break;
  }
  return Value(!is_true(operand));
}

Value Interpreter::value_of(const Arithmetic& node) {
  Value value = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    value = binary(workspace_, op, value, evaluate(*operand));
  }
  return value;
}

Value Interpreter::value_of(const Concat& node) {
  std::vector<Value> parts;
  for (const ExpressionPtr& part : node.parts) parts.push_back(evaluate(*part));
  std::string text;
  for (const Value part : parts) append_text(workspace_, part, text);
  return workspace_.text(std::move(text));
}

Value Interpreter::value_of(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    const Value right = evaluate(*operand);
    if (!compare(workspace_, op, left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

Value Interpreter::value_of(const Logic& node) {
  Value value;
  for (const ExpressionPtr& operand : node.operands) {
    value = evaluate(*operand);
    if (is_true(value) != node.is_and) break;
  }
  return value;
}

Value Interpreter::value_of(const Conditional& node) {
  if (is_true(evaluate(*node.condition))) return evaluate(*node.value);
  if (node.otherwise) return evaluate(*node.otherwise);
  return workspace_.undefined("an 'if' without 'else' has no value");
}

Value Interpreter::call(Value function, const Arguments& arguments) {
  if (function.is(Kind::undefined)) workspace_.fail(function.undefined().what);
  if (function.is(Kind::loop)) workspace_.fail("a call of a loop that is not recursive");
  if (!function.is(Kind::callable)) {
    workspace_.fail(fmt::format("a call of {}", describe(function)));
  }
  const Callable& callable = function.callable();
  switch (callable.kind) {
    case CallableKind::global:
      return call_global(workspace_, callable.name, arguments, date_);
    case CallableKind::method:
      return call_method(workspace_, callable, arguments);
    case CallableKind::macro:
      break;
  }
  return call_macro(callable, arguments);
}

Value Interpreter::call_macro(const Callable& function, const Arguments& arguments) {
  const Deeper deeper(*this);
  const Macro& macro = *function.macro;
  const std::size_t line = workspace_.line;
  Activation* outer = activation_;
  activation_ = &workspace_.new_activation(function.closure, macro.slots);
  Capture capture(*this);
  bind(macro, arguments);
  run(macro.body);
  activation_ = outer;
  workspace_.line = line;
  return workspace_.text(capture.take());
}

void Interpreter::bind(const Macro& macro, const Arguments& arguments) {
  const std::string_view shown = macro.name.empty() ? "caller" : std::string_view(macro.name);
  const auto& positional = arguments.positional;
  const std::size_t count = macro.parameters.size();
  std::vector<std::pair<std::string_view, Value>> named = arguments.named;
  const auto take = [&](std::string_view name) {
    const auto at = std::find_if(named.begin(), named.end(),
                                 [&](const auto& entry) { return entry.first == name; });
    if (at == named.end()) return Value::missing();
    const Value value = at->second;
    named.erase(at);
    return value;
  };
  std::vector<Value> values(
      positional.begin(),
      positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, positional.size())));
  for (std::size_t i = values.size(); i < count; ++i) {
    values.push_back(take(macro.parameters[i].name));
  }
  for (std::size_t i = 0; i < count; ++i) variable(macro.parameters[i].place) = values[i];
  if (macro.caller) {
    Value caller = take("caller");
    if (caller.is(Kind::missing) || caller.is(Kind::none)) {
      caller = workspace_.undefined("there is no caller");
    }
    variable(*macro.caller) = caller;
  }
  if (macro.kwargs) {
    auto rest = std::make_unique<Dict>();
    for (const auto& [name, value] : named) {
      workspace_.set(*rest, workspace_.text(std::string(name)), value);
    }
    variable(*macro.kwargs) = workspace_.dict(std::move(rest));
  } else if (!named.empty()) {
    workspace_.fail(fmt::format("the macro '{}' takes no argument '{}'", shown,
                                printable(named.front().first)));
  }
  if (macro.varargs) {
    const std::size_t used = std::min(count, positional.size());
    variable(*macro.varargs) = workspace_.tuple(
        {positional.begin() + static_cast<std::ptrdiff_t>(used), positional.end()});
  } else if (positional.size() > count) {
    workspace_.fail(fmt::format("the macro '{}' takes at most {} arguments, not {}", shown, count,
                                positional.size()));
  }
  enter(macro.scope);
  for (const Macro::Parameter& parameter : macro.parameters) {
    if (!variable(parameter.place).is(Kind::missing)) continue;
    const Value value =
        parameter.fallback
            ? evaluate(*parameter.fallback)
            : workspace_.undefined(fmt::format("the parameter '{}' is not given", parameter.name));
    variable(parameter.place) = value;
  }
}

}  // namespace lockstep::jinja
