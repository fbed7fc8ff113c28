// How much a template may do. It comes out of a model file, so it may be anything: a loop that
// never ends, a text that doubles a hundred times, a list nested a million deep. Real templates
// stay far below all of these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::jinja {

// Of a template's text, at parsing.
inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 120;        // tags and parentheses inside each other
inline constexpr std::size_t kMaxNamed = 255;  // parameters of a macro, named arguments of a call

// Of one rendering.
struct Limits {
  std::uint64_t steps = 20'000'000;                // expressions, tags and items looked at
  std::uint64_t bytes = std::uint64_t{256} << 20;  // made in all, results in between included
  std::size_t text_bytes = std::size_t{64} << 20;  // of one text
  int depth = 600;                                 // expressions and macros inside each other
};

inline constexpr int kMaxValueDepth = 100;          // lists in lists
inline constexpr std::int64_t kMaxRange = 100'000;  // items of a range, as in Jinja's sandbox

}  // namespace lockstep::jinja
