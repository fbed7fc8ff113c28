// See name_search.h. Jinja decides by this whether a loop has a `loop` and a macro a `caller`, and
// the order in which it looks at the parts of a tag decides the odd cases.
#include "runtime/chat/jinja/name_search.h"

namespace lockstep::jinja {
namespace {

class Search {
 public:
  explicit Search(std::string_view name) : name_(name) {}

  bool reads(const Body& body) {
    look(body);
    return read_;
  }

 private:
  void look(const Body& body) {
    for (const Statement& statement : body) {
      if (done_) return;
      std::visit(*this, statement.node);
    }
  }

  void look(const ExpressionPtr& expression) {
    if (expression && !done_) look(*expression);
  }

  void look(const Expression& expression) {
    if (done_) return;
    if (const auto* name = std::get_if<Name>(&expression.node)) {
      if (name->name == name_) read_ = done_ = true;
      return;
    }
    for_each_child(expression, [&](const Expression& child) { look(child); });
  }

  void look(const Target& target) {
    if (target.is_tuple) {
      for (const Target& part : target.parts) look(part);
    } else if (target.attribute.empty() && target.name == name_) {
      done_ = true;  // stored first
    }
  }

  void look(const Macro& macro) {
    for (const Macro::Parameter& parameter : macro.parameters) {
      if (parameter.name == name_) done_ = true;
    }
    for (const Macro::Parameter& parameter : macro.parameters) look(parameter.fallback);
    look(macro.body);
  }

 public:
  void operator()(const Text&) {}
  void operator()(const Break&) {}
  void operator()(const Continue&) {}
  void operator()(const Print& print) { look(print.value); }
  void operator()(const If& node) {
    for (const auto& [condition, body] : node.branches) look(condition), look(body);
    look(node.otherwise);
  }
  void operator()(const For& node) {
    look(node.target), look(node.items), look(node.body), look(node.otherwise), look(node.test);
  }
  void operator()(const Set& node) { look(node.target), look(node.value); }
  void operator()(const SetBlock& node) { look(node.target), look(node.filter), look(node.body); }
  void operator()(const MacroDefinition& node) { look(node.macro); }
  void operator()(const CallBlock& node) { look(node.call), look(node.body); }
  void operator()(const FilterBlock& node) { look(node.body), look(node.filter); }
  void operator()(const With& node) {
    for (const auto& [target, value] : node.variables) look(target);
    for (const auto& [target, value] : node.variables) look(value);
    look(node.body);
  }

 private:
  std::string_view name_;
  bool read_ = false, done_ = false;
};

}  // namespace

bool reads_undeclared(const Body& body, std::string_view name) { return Search(name).reads(body); }

}  // namespace lockstep::jinja
