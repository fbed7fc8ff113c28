// Python's str methods as functions of valid UTF-8. Where a method counts, it counts code points.
// All take time in proportion to their texts, whatever those are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jinja {

class Workspace;

enum class Side : std::uint8_t { left, right, both };

// Without white space at its ends, or without the characters that `characters` holds.
std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side);

// Where `part` occurs first, from byte `from` on, or last; npos if it does not.
std::size_t find_part(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t rfind_part(std::string_view text, std::string_view part);

// At white space, in runs; `limit` < 0 is no limit. `from_right`: the last `limit` places. The
// parts are charged to the workspace, here and below.
std::vector<std::string_view> split_space(Workspace& workspace, std::string_view text,
                                          std::int64_t limit, bool from_right);
// At a separator that is not empty.
std::vector<std::string_view> split_at(Workspace& workspace, std::string_view text,
                                       std::string_view separator, std::int64_t limit,
                                       bool from_right);
std::vector<std::string_view> split_lines(Workspace& workspace, std::string_view text,
                                          bool keep_ends);

// How often `part` occurs, without overlap; between all characters if it is empty.
std::size_t count_parts(std::string_view text, std::string_view part);
// The first `limit` occurrences replaced (all if < 0).
std::string replace(std::string_view text, std::string_view old, std::string_view with,
                    std::int64_t limit);

// Characters from `start` on, `count` of them, `step` apart.
std::string pick(std::string_view text, std::int64_t start, std::int64_t step, std::size_t count);

// Nothing if the text has a character whose mapping is not known here (see unicode.h); the sharp s
// in upper case is.
std::optional<std::string> upper(std::string_view text);
std::optional<std::string> lower(std::string_view text);
std::optional<std::string> capitalize(std::string_view text);
// The filter's: words begin after white space and after - ( { [ <.
std::optional<std::string> title_words(std::string_view text);
// The method's: words begin after everything that is no letter. For ASCII.
std::string title_letters(std::string_view text);

// & < > ' " as HTML entities.
std::string escape_html(std::string_view text);

}  // namespace lockstep::jinja
