// Jinja's rules of scope, found before anything runs: what a name means in a scope depends on all
// of the scope's text. A name that a scope stores in is its own, and starts as the outer variable
// of that name; one that it only reads is the outer scope's, or what the rendering is given. A
// scope stores in a name under a condition: then the name starts as what it would be without.
#include "runtime/chat/jinja/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/chat/jinja/name_search.h"
#include "runtime/chat/jinja/token.h"

namespace lockstep::jinja {
namespace {

using From = EntryLoad::From;

// What will share an Activation: the template, or a macro.
struct Function {
  const Function* parent = nullptr;
  std::uint32_t slots = 0;
};

struct Load {
  bool is_parameter = false;
  From from = From::nothing;
  Place outer = {};
};

// The variables of one scope. While the branches of an `if` are looked at, what each of them adds
// lies in a layer of its own.
class Symbols {
 public:
  Symbols(Symbols* parent, Function& function) : parent_(parent), function_(function) {
    layers_.emplace_back();
  }

  void declare_parameter(const std::string& name) {
    layers_.back().stores.insert(name);
    define(name, {true, From::nothing, {}});
  }

  void store(const std::string& name) {
    layers_.back().stores.insert(name);
    if (is_own(name)) return;
    const auto outer = parent_ ? parent_->find(name, function_) : std::nullopt;
    define(name, outer ? Load{false, From::outer, *outer} : Load{});
  }

  void load(const std::string& name) {
    if (!find(name, function_)) define(name, {false, From::context, {}});
  }

  // Three ways on, of which one is taken: visits each of them and merges what they did.
  template <typename... Visits>
  void branches(Visits&&... visits) {
    std::vector<Layer> ends;
    const auto follow = [&](auto&& visit) {
      layers_.emplace_back();
      visit();
      ends.push_back(std::move(layers_.back()));
      layers_.pop_back();
    };
    (follow(visits), ...);
    merge(ends);
  }

  // The place of a name as code of `from` sees it; nothing if no scope knows it.
  std::optional<Place> find(const std::string& name, const Function& from) const {
    if (is_own(name)) {
      std::uint32_t hops = 0;
      for (const Function* f = &from; f != &function_; f = f->parent) ++hops;
      return Place{hops, slots_.at(name)};
    }
    return parent_ ? parent_->find(name, from) : std::nullopt;
  }

  Scope entry_loads() const {
    Scope scope;
    for (const auto& [name, load] : layers_.front().loads) {
      if (load.is_parameter) continue;
      scope.push_back({{0, slots_.at(name)}, load.from, load.outer, name});
    }
    return scope;
  }

  Function& function() const { return function_; }

 private:
  struct Layer {
    std::set<std::string> refs, stores;
    std::map<std::string, Load> loads;
  };

  bool is_own(const std::string& name) const {
    for (const Layer& layer : layers_) {
      if (layer.refs.count(name) > 0) return true;
    }
    return false;
  }

  bool is_stored(const std::string& name) const {
    for (const Layer& layer : layers_) {
      if (layer.stores.count(name) > 0) return true;
    }
    return false;
  }

  void define(const std::string& name, const Load& load) {
    if (slots_.count(name) == 0) slots_[name] = function_.slots++;
    layers_.back().refs.insert(name);
    layers_.back().loads[name] = load;
  }

  void merge(std::vector<Layer>& ends) {
    std::map<std::string, std::size_t> stored_in;
    for (const Layer& end : ends) {
      for (const std::string& name : end.stores) {
        if (!is_stored(name)) ++stored_in[name];
      }
    }
    Layer& base = layers_.back();
    for (Layer& end : ends) {
      base.refs.merge(end.refs);
      base.stores.merge(end.stores);
      for (const auto& [name, load] : end.loads) base.loads[name] = load;
    }
    for (const auto& [name, count] : stored_in) {
      if (count == ends.size()) continue;
      const auto outer = parent_ ? parent_->find(name, function_) : std::nullopt;
      base.loads[name] = outer ? Load{false, From::outer, *outer} : Load{false, From::context, {}};
    }
  }

  Symbols* parent_;
  Function& function_;
  std::vector<Layer> layers_;
  std::map<std::string, std::uint32_t> slots_;
};

// Collects what a scope's own text does with names. Does not look into scopes inside.
class Collector {
 public:
  explicit Collector(Symbols& symbols) : symbols_(symbols) {}

  void body(const Body& body) {
    for (const Statement& statement : body) std::visit(*this, statement.node);
  }
  void expression(const ExpressionPtr& expression) {
    if (expression) this->expression(*expression);
  }
  void parameters(const Target& target) {
    if (!target.is_tuple) symbols_.declare_parameter(target.name);
    for (const Target& part : target.parts) parameters(part);
  }

  void operator()(const Text&) {}
  void operator()(const Break&) {}
  void operator()(const Continue&) {}
  void operator()(const Print& node) { expression(node.value); }
  void operator()(const If& node) {
    expression(node.branches.front().first);
    const auto nothing = [] {};
    symbols_.branches([&] { body(node.branches.front().second); },
                      [&] {
                        for (std::size_t i = 1; i < node.branches.size(); ++i) {
                          expression(node.branches[i].first);
                          symbols_.branches([&] { body(node.branches[i].second); }, nothing,
                                            nothing);
                        }
                      },
                      [&] { body(node.otherwise); });
  }
  void operator()(const For& node) { expression(node.items); }
  void operator()(const Set& node) { expression(node.value), target(node.target); }
  void operator()(const SetBlock& node) { target(node.target); }
  void operator()(const MacroDefinition& node) { symbols_.store(node.macro.name); }
  void operator()(const CallBlock& node) { expression(node.call); }
  void operator()(const FilterBlock& node) { expression(node.filter); }
  void operator()(const With& node) {
    for (const auto& [target, value] : node.variables) expression(value);
  }

 private:
  void expression(const Expression& expression) {
    if (const auto* name = std::get_if<Name>(&expression.node)) symbols_.load(name->name);
    for_each_child(expression, [&](const Expression& child) { this->expression(child); });
  }

  void target(const Target& target) {
    for (const Target& part : target.parts) this->target(part);
    if (target.is_tuple) return;
    if (target.attribute.empty()) {
      symbols_.store(target.name);
    } else {
      symbols_.load(target.name);
    }
  }

  Symbols& symbols_;
};

// Writes places into the tree, scope by scope from the outside in.
class Resolver {
 public:
  explicit Resolver(SyntaxTree& tree) : tree_(tree) {}

  void run() {
    Function function;
    Symbols symbols(nullptr, function);
    Collector(symbols).body(tree_.body);
    within(symbols, tree_.scope, [&] { resolve(tree_.body); });
    tree_.slots = function.slots;
    tree_.context_names.assign(context_names_.begin(), context_names_.end());
  }

  void operator()(Text&) {}
  void operator()(Break&) {}
  void operator()(Continue&) {}
  void operator()(Print& node) { resolve(node.value); }
  void operator()(If& node) {
    for (auto& [condition, body] : node.branches) resolve(condition), resolve(body);
    resolve(node.otherwise);
  }
  void operator()(For& node);
  void operator()(Set& node) {
    check_loop_name(node.target);
    resolve(node.value);
    resolve(node.target);
  }
  void operator()(SetBlock& node);
  void operator()(MacroDefinition& node) {
    resolve(node.target);
    macro(node.macro);
  }
  void operator()(CallBlock& node) {
    macro(node.body);
    resolve(node.call);
  }
  void operator()(FilterBlock& node);
  void operator()(With& node);

 private:
  // Resolves what `visit` resolves in a scope whose names are collected already.
  template <typename Visit>
  void within(Symbols& symbols, Scope& scope, Visit&& visit) {
    Symbols* outer = std::exchange(symbols_, &symbols);
    visit();
    scope = symbols.entry_loads();
    for (const EntryLoad& load : scope) {
      if (load.from == From::context) context_names_.insert(load.name);
    }
    symbols_ = outer;
  }

  void resolve(Body& body) {
    for (Statement& statement : body) {
      line_ = statement.line;
      std::visit(*this, statement.node);
    }
  }
  void resolve(const ExpressionPtr& expression) {
    if (expression) resolve(*expression);
  }
  void resolve(Expression& expression) {
    if (auto* name = std::get_if<Name>(&expression.node)) name->place = place_of(name->name);
    for_each_child(expression, [&](Expression& child) { resolve(child); });
  }
  void resolve(Target& target) {
    for (Target& part : target.parts) resolve(part);
    if (target.is_tuple) return;
    target.place = place_of(target.name);
  }
  // Targets of `set` and `for`, which must leave a loop's own variable alone.
  void check_loop_name(const Target& target) const {
    for (const Target& part : target.parts) check_loop_name(part);
    if (loops_ > 0 && target.attribute.empty() && target.name == "loop") {
      syntax_error(line_, "an assignment to 'loop' inside a loop");
    }
  }
  Place place_of(const std::string& name) const {
    return *symbols_->find(name, symbols_->function());
  }

  void macro(Macro& macro);
  Function& function() const { return symbols_->function(); }

  SyntaxTree& tree_;
  Symbols* symbols_ = nullptr;
  int loops_ = 0;  // around, across macros
  std::size_t line_ = 1;
  std::set<std::string> context_names_;
};

void Resolver::operator()(For& node) {
  resolve(node.items);
  ++loops_;
  check_loop_name(node.target);
  Symbols symbols(symbols_, function());
  const bool has_loop = reads_undeclared(node.body, "loop");
  if (has_loop) symbols.declare_parameter("loop");
  Collector collector(symbols);
  collector.parameters(node.target);
  collector.body(node.body);
  node.test_target = node.target;
  within(symbols, node.scope, [&] {
    resolve(node.target);
    if (has_loop) node.loop = place_of("loop");
    resolve(node.body);
  });
  if (node.test) {
    Symbols test_symbols(symbols_, function());
    Collector test_collector(test_symbols);
    test_collector.parameters(node.target);
    test_collector.expression(node.test);
    within(test_symbols, node.test_scope, [&] { resolve(node.test_target), resolve(node.test); });
  }
  Symbols otherwise(symbols_, function());
  Collector(otherwise).body(node.otherwise);
  within(otherwise, node.otherwise_scope, [&] { resolve(node.otherwise); });
  --loops_;
}

void Resolver::operator()(SetBlock& node) {
  check_loop_name(node.target);
  Symbols symbols(symbols_, function());
  Collector collector(symbols);
  collector.body(node.body);
  collector.expression(node.filter);
  within(symbols, node.scope, [&] { resolve(node.body), resolve(node.filter); });
  resolve(node.target);
}

void Resolver::operator()(FilterBlock& node) {
  Symbols symbols(symbols_, function());
  Collector collector(symbols);
  collector.body(node.body);
  collector.expression(node.filter);
  within(symbols, node.scope, [&] { resolve(node.body), resolve(node.filter); });
}

void Resolver::operator()(With& node) {
  for (auto& [target, value] : node.variables) resolve(value);
  Symbols symbols(symbols_, function());
  Collector collector(symbols);
  for (const auto& [target, value] : node.variables) collector.parameters(target);
  collector.body(node.body);
  within(symbols, node.scope, [&] {
    for (auto& [target, value] : node.variables) resolve(target);
    resolve(node.body);
  });
}

void Resolver::macro(Macro& macro) {
  Function own{&function(), 0};
  Symbols symbols(symbols_, own);
  const auto parameter = [&](const std::string& name) {
    const auto at = std::find_if(macro.parameters.begin(), macro.parameters.end(),
                                 [&](const Macro::Parameter& p) { return p.name == name; });
    return at == macro.parameters.end() ? nullptr : &*at;
  };
  macro.takes_caller = reads_undeclared(macro.body, "caller");
  const auto* caller = parameter("caller");
  if (macro.takes_caller && caller && !caller->fallback) {
    syntax_error(line_, "a parameter 'caller' without a default");
  }
  const bool needs_caller = macro.takes_caller && !caller;
  const bool needs_kwargs = reads_undeclared(macro.body, "kwargs") && !parameter("kwargs");
  const bool needs_varargs = reads_undeclared(macro.body, "varargs") && !parameter("varargs");
  if (needs_caller) symbols.declare_parameter("caller");
  if (needs_kwargs) symbols.declare_parameter("kwargs");
  if (needs_varargs) symbols.declare_parameter("varargs");
  for (const Macro::Parameter& p : macro.parameters) symbols.declare_parameter(p.name);
  Collector collector(symbols);
  for (const Macro::Parameter& p : macro.parameters) collector.expression(p.fallback);
  collector.body(macro.body);
  within(symbols, macro.scope, [&] {
    for (Macro::Parameter& p : macro.parameters) {
      resolve(p.fallback);
      p.place = place_of(p.name);
    }
    if (needs_caller) macro.caller = place_of("caller");
    if (needs_kwargs) macro.kwargs = place_of("kwargs");
    if (needs_varargs) macro.varargs = place_of("varargs");
    resolve(macro.body);
  });
  macro.slots = own.slots;
}

}  // namespace

void resolve_names(SyntaxTree& tree) { Resolver(tree).run(); }

}  // namespace lockstep::jinja
