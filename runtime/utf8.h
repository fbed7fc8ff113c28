// UTF-8 as hostile bytes: finding characters, replacing what is none, and cutting a stream of token
// pieces at character ends. Token pieces may end inside a character and prompts may hold anything,
// while every text this project writes must be valid UTF-8; so the rules live here, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class Utf8Status : std::uint8_t {
  valid,       // one character
  invalid,     // bytes that no character starts with, or a character broken off by another byte
  incomplete,  // the text ends inside a character
};

struct Utf8Step {
  Utf8Status status;
  std::size_t length;  // bytes of the character or of the longest broken part: at least 1
};

// What `rest` (not empty) starts with. Strict: no overlong forms, no surrogates, nothing above
// U+10FFFF.
Utf8Step next_utf8(std::string_view rest) noexcept;

// Bytes from the start of `text` that are valid UTF-8.
std::size_t valid_utf8_prefix(std::string_view text) noexcept;

void append_utf8(std::string& text, char32_t character);

// Every broken part becomes one U+FFFD, as Unicode recommends and the web's decoders do.
std::string sanitize_utf8(std::string_view text);

// Hands out only complete characters of a text that arrives in pieces. The pieces' outputs and
// flush() together are sanitize_utf8() of the whole text, wherever it was cut.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string flush();  // U+FFFD if the text ended inside a character; ready for the next text

 private:
  std::string pending_;  // the first bytes of a character: at most 3
};

}  // namespace lockstep
