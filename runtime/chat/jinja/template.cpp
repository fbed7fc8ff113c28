// See template.h.
#include "runtime/chat/jinja/template.h"

#include <algorithm>

#include "runtime/chat/jinja/interpreter.h"
#include "runtime/chat/jinja/parser.h"

namespace lockstep::jinja {

Template::Template(std::string_view source)
    : tree_(std::make_unique<const SyntaxTree>(parse(source))) {}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

std::string Template::render(Workspace& workspace, const Dict& variables,
                             const std::optional<Date>& date) const {
  return Interpreter(workspace, variables, date).render(*tree_);
}

bool Template::reads(std::string_view variable) const {
  return std::binary_search(tree_->context_names.begin(), tree_->context_names.end(), variable);
}

bool Template::mentions(std::string_view word) const {
  return std::binary_search(tree_->words.begin(), tree_->words.end(), word);
}

}  // namespace lockstep::jinja
