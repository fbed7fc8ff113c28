// Characters of text that is known to be valid UTF-8, with the classes and case mappings of
// Python's str.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::jinja {

std::size_t count_characters(std::string_view text) noexcept;
// The character at text[at]; moves `at` behind it.
char32_t next_character(std::string_view text, std::size_t& at) noexcept;
// The character that ends before text[at] (at > 0); moves `at` to its start.
char32_t previous_character(std::string_view text, std::size_t& at) noexcept;
// The byte where character `index` (0 .. length) starts.
std::size_t byte_of_character(std::string_view text, std::size_t index) noexcept;

bool is_ascii(std::string_view text) noexcept;
// What str.isspace() holds of.
bool is_space(char32_t character) noexcept;
// Whether repr() writes all of the text's characters as they are (quotes and backslashes aside).
// Throws std::bad_alloc.
bool is_printable(char32_t character);

// Nothing for the few characters whose mapping is not a single character, or depends on place.
std::optional<char32_t> to_upper(char32_t character) noexcept;
std::optional<char32_t> to_lower(char32_t character) noexcept;

}  // namespace lockstep::jinja
