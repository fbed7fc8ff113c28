// See arguments.h.
#include "runtime/chat/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::jinja {

Bound::Bound(Workspace& workspace, std::string callee, const Arguments& arguments,
             std::initializer_list<std::string_view> parameters, std::size_t required)
    : workspace_(workspace), callee_(std::move(callee)), names_{} {
  std::copy(parameters.begin(), parameters.end(), names_.begin());
  if (arguments.positional.size() > parameters.size()) {
    workspace_.fail(fmt::format("{} takes at most {} arguments, not {}", callee_, parameters.size(),
                                arguments.positional.size()));
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), values_.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(parameters.begin(), parameters.end(), name);
    if (at == parameters.end()) {
      workspace_.fail(fmt::format("{} takes no argument '{}'", callee_, name));
    }
    std::optional<Value>& slot = values_[static_cast<std::size_t>(at - parameters.begin())];
    if (slot) workspace_.fail(fmt::format("{} is given '{}' twice", callee_, name));
    slot = value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!values_[i]) workspace_.fail(fmt::format("{} needs the argument '{}'", callee_, names_[i]));
  }
}

void Bound::refuse(std::size_t i, std::string_view expected) const {
  const Value value = *values_[i];
  if (value.is(Kind::undefined)) workspace_.fail(value.undefined().what);
  workspace_.fail(
      fmt::format("{} takes {} as '{}', not {}", callee_, expected, names_[i], describe(value)));
}

bool Bound::truth(std::size_t i, bool fallback) const {
  return values_[i] ? is_true(*values_[i]) : fallback;
}

std::int64_t Bound::integer(std::size_t i, std::int64_t fallback) const {
  if (!values_[i]) return fallback;
  if (!values_[i]->is_integral()) refuse(i, "an int");
  return values_[i]->integer();
}

std::string_view Bound::text(std::size_t i, std::string_view fallback) const {
  if (!values_[i]) return fallback;
  if (!values_[i]->is(Kind::string)) refuse(i, "a string");
  return values_[i]->text();
}

std::optional<std::string_view> Bound::optional_text(std::size_t i) const {
  if (!values_[i] || values_[i]->is(Kind::none)) return std::nullopt;
  return text(i, {});
}

}  // namespace lockstep::jinja
