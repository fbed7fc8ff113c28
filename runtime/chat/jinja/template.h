// A Jinja template, parsed once and rendered any number of times. The environment is that of
// Hugging Face chat templates: trim_blocks and lstrip_blocks on, `break` and `continue`,
// {% generation %}, an immutable sandbox, no automatic escaping, tojson without HTML escapes, and
// the functions raise_exception, strftime_now, namespace, range and dict. What is not supported is
// refused by name and line, never left out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/jinja/limits.h"
#include "runtime/chat/jinja/strftime.h"
#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

struct SyntaxTree;

class Template {
 public:
  // Throws Error(bad_model) for a template that is not valid or not supported.
  explicit Template(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables` lie in `workspace`, which ends with the rendering's values. strftime_now exists if
  // there is a `date`. Throws Error(bad_input) for what the template refuses, Error(bad_model) at a
  // limit and for what is not supported. Thread-safe.
  std::string render(Workspace& workspace, const Dict& variables,
                     const std::optional<Date>& date) const;

  // Whether the template anywhere reads a variable of that name that it does not set itself.
  bool reads(std::string_view variable) const;
  // Whether it anywhere has the word as an attribute's name or a string.
  bool mentions(std::string_view word) const;

 private:
  std::unique_ptr<const SyntaxTree> tree_;
};

}  // namespace lockstep::jinja
