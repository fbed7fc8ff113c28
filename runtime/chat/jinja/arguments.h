// The arguments of a call, and their binding to parameter names as Python binds them.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;

  bool empty() const noexcept { return positional.empty() && named.empty(); }
};

// Typed access to bound arguments. `callee` names the function in messages: "the filter 'indent'".
class Bound {
 public:
  // Fails for arguments too many, unknown or given twice, and if one of the first `required` is
  // missing.
  Bound(Workspace& workspace, std::string callee, const Arguments& arguments,
        std::initializer_list<std::string_view> parameters, std::size_t required = 0);

  bool has(std::size_t i) const noexcept { return values_[i].has_value(); }
  // `fallback` where the argument was left out.
  Value get(std::size_t i, Value fallback = Value()) const { return values_[i].value_or(fallback); }
  bool truth(std::size_t i, bool fallback) const;
  std::int64_t integer(std::size_t i, std::int64_t fallback) const;
  std::string_view text(std::size_t i, std::string_view fallback) const;
  // Nothing if left out or none.
  std::optional<std::string_view> optional_text(std::size_t i) const;

 private:
  static constexpr std::size_t kMost = 6;
  [[noreturn]] void refuse(std::size_t i, std::string_view expected) const;

  Workspace& workspace_;
  std::string callee_;
  std::array<std::string_view, kMost> names_;
  std::array<std::optional<Value>, kMost> values_;
};

}  // namespace lockstep::jinja
