// Statements: what writes text, stores variables and decides what comes next.
#include "runtime/chat/jinja/interpreter.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/chat/jinja/guards.h"
#include "runtime/chat/jinja/methods.h"
#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"

namespace lockstep::jinja {

std::string Interpreter::render(const SyntaxTree& tree) {
  std::string out;
  out_ = &out;
  activation_ = &workspace_.new_activation(nullptr, tree.slots);
  enter(tree.scope);
  run(tree.body);
  return out;
}

void Interpreter::write(std::string_view text) {
  workspace_.check_text(out_->size() + text.size());
  workspace_.charge_bytes(text.size());
  *out_ += text;
}

void Interpreter::write_block(Value text) {
  if (!text.is(Kind::string)) {
    workspace_.fail(fmt::format("a block gives {} where text is written", describe(text)));
  }
  write(text.text());
}

Value& Interpreter::variable(const Place& place) {
  Activation* activation = activation_;
  for (std::uint32_t hops = place.hops; hops > 0; --hops) activation = activation->parent;
  return activation->slots[place.slot];
}

Value Interpreter::context_value(const std::string& name) {
  if (const Value* value = variables_.find(name)) return *value;
  if (const Callable* global = find_global(name, date_.has_value())) return Value(global);
  return Value::missing();
}

void Interpreter::enter(const Scope& scope) {
  workspace_.charge_steps(scope.size());
  for (const EntryLoad& load : scope) {
    Value value = Value::missing();
    if (load.from == EntryLoad::From::outer) value = variable(load.outer);
    if (load.from == EntryLoad::From::context) value = context_value(load.name);
    variable(load.target) = value;
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const EntryLoad& load : scope) variable(load.target) = Value::missing();
}

void Interpreter::unpack(const Target& target, Value value) {
  const std::vector<Value> items = items_of(workspace_, value);
  if (items.size() != target.parts.size()) {
    workspace_.fail(fmt::format("{} values for {} names", items.size(), target.parts.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

void Interpreter::assign(const Target& target, Value value) {
  if (target.is_tuple) return unpack(target, value);
  Value& place = variable(target.place);
  if (target.attribute.empty()) {
    place = value;
    return;
  }
  workspace_.line = target.line;
  if (!place.is(Kind::name_space)) {
    workspace_.fail(fmt::format("'{}' is no namespace that could be written to", target.name));
  }
  workspace_.set(place.space(), workspace_.text(target.attribute), value);
}

void Interpreter::forget(const Target& target) {
  for (const Target& part : target.parts) forget(part);
  if (!target.is_tuple) variable(target.place) = Value::missing();
}

Value Interpreter::macro_value(const Macro& macro) {
  return workspace_.callable({CallableKind::macro, macro.name, Value(), &macro, activation_});
}

Interpreter::Flow Interpreter::run(const Body& body) {
  const Deeper deeper(*this);
  for (const Statement& statement : body) {
    workspace_.line = statement.line;
    workspace_.charge_steps();
    const Flow flow =
        std::visit([&](const auto& node) { return run_statement(node); }, statement.node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const Text& node) {
  write(node.text);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const Print& node) {
  const Value value = evaluate(*node.value);
  if (value.is(Kind::string)) {
    write(value.text());
  } else {
    write(to_text(workspace_, value));
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (is_true(evaluate(*condition))) return run(body);
  }
  return run(node.otherwise);
}

bool Interpreter::passes(const For& node, Value item) {
  assign(node.test_target, item);
  return is_true(evaluate(*node.test));
}

Loop& Interpreter::start_loop(const For& node) {
  const Value items = evaluate(*node.items);
  Loop& loop = workspace_.new_loop();
  Cursor* cursor = nullptr;
  if (items.is(Kind::iterator)) {
    cursor = &items.cursor();
  } else {
    const Value list = items.is_sequence() ? items : workspace_.list(items_of(workspace_, items));
    cursor = &workspace_.new_cursor(list.sequence());
    if (!node.test) loop.length = length_of(list);
  }
  if (node.test) enter(node.test_scope);
  Activation* home = activation_;
  loop.fetch = [this, cursor, home, &node, busy = false](Value& item) mutable {
    if (busy) workspace_.fail("the filter of a loop asks for the loop's own next item");
    while (cursor->next < cursor->items->items.size()) {
      workspace_.charge_steps();
      item = cursor->items->items[cursor->next++];
      if (!node.test) return true;
      // A macro may be what asks for the next item.
      Activation* asking = std::exchange(activation_, home);
      busy = true;
      const bool passed = passes(node, item);
      busy = false;
      activation_ = asking;
      if (passed) return true;
    }
    return false;
  };
  return loop;
}

Interpreter::Flow Interpreter::run_statement(const For& node) {
  Loop& loop = start_loop(node);
  bool completed = false;
  while (loop.advance()) {
    assign(node.target, *loop.current);
    if (node.loop) variable(*node.loop) = Value(&loop);
    enter(node.scope);
    const Flow flow = run(node.body);
    if (flow == Flow::leave_loop) break;
    // In Jinja, `else` also follows items that all ended in `continue` or `break`.
    if (flow == Flow::normal) completed = true;
  }
  leave(node.scope);
  forget(node.target);
  if (node.loop) variable(*node.loop) = Value::missing();
  if (completed || node.otherwise.empty()) return Flow::normal;
  enter(node.otherwise_scope);
  const Flow flow = run(node.otherwise);
  leave(node.otherwise_scope);
  return flow;
}

Interpreter::Flow Interpreter::run_statement(const Set& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const SetBlock& node) {
  enter(node.scope);
  Capture capture(*this);
  const Flow flow = run(node.body);
  if (flow != Flow::normal) return flow;
  Value text = workspace_.text(capture.take());
  if (node.filter) text = filtered(*node.filter, text);
  assign(node.target, text);
  leave(node.scope);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const MacroDefinition& node) {
  assign(node.target, macro_value(node.macro));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const CallBlock& node) {
  const Value caller = macro_value(node.body);
  const Value written =
      node.call ? call_with(std::get<Call>(node.call->node), caller) : call(caller, {});
  write_block(written);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const FilterBlock& node) {
  enter(node.scope);
  Value text;
  {
    Capture capture(*this);
    const Flow flow = run(node.body);
    if (flow != Flow::normal) return flow;
    text = filtered(*node.filter, workspace_.text(capture.take()));
  }
  write_block(text);
  leave(node.scope);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const With& node) {
  enter(node.scope);
  for (const auto& [target, value] : node.variables) assign(target, evaluate(*value));
  const Flow flow = run(node.body);
  leave(node.scope);
  for (const auto& [target, value] : node.variables) forget(target);
  return flow;
}

Interpreter::Flow Interpreter::run_statement(const Break&) { return Flow::leave_loop; }

Interpreter::Flow Interpreter::run_statement(const Continue&) { return Flow::next_item; }

}  // namespace lockstep::jinja
