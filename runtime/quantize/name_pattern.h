// A regular expression that is searched for in tensor names. Names come from files and patterns
// from users, so neither may cost more than a bounded effort: PCRE2 counts its steps, where
// std::regex recurses once for each character.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::quantize {

class NamePattern {
 public:
  // Throws Error(usage) with the place of a mistake.
  explicit NamePattern(const std::string& pattern);

  // Throws Error(usage) if the search takes too many steps.
  bool found_in(std::string_view name) const;

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace lockstep::quantize
