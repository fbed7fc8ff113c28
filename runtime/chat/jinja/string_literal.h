// The escapes in a template's string literals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::jinja {

// What the text between the quotes stands for. Throws Error(bad_model) with the line for broken
// escapes and for those that are no character by themselves.
std::string unescape(std::string_view literal, std::size_t line);

}  // namespace lockstep::jinja
