// Making text from a file safe to show on one line. Names and strings in a model file may hold
// anything: control characters that rewrite a terminal, broken UTF-8, kilobytes without a space.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/utf8.h"

namespace lockstep {

// True for one valid UTF-8 character that a terminal acts on instead of showing it: C0 and C1
// controls, DEL, line separators, and the marks that turn the direction of a line.
inline bool is_control(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const bool separator_or_embedding = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool mark = byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f);
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return separator_or_embedding || mark || isolate;
}

// `text` with control characters and broken bytes written as \n, \t or \x1b, and everything after
// `limit` characters as "...".
inline std::string printable(std::string_view text, std::size_t limit = 96) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == limit) return out + "...";
    const Utf8Step step = next_utf8(text);
    const std::string_view character = text.substr(0, step.length);
    text.remove_prefix(step.length);
    if (step.status == Utf8Status::valid && !is_control(character)) {
      out += character;
    } else if (character == "\n") {
      out += "\\n";
    } else if (character == "\t") {
      out += "\\t";
    } else {
      for (const char c : character) {
        const auto value = static_cast<unsigned char>(c);
        out += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
      }
    }
  }
  return out;
}

}  // namespace lockstep
