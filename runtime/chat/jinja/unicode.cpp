// See unicode.h. What can be shown is asked of PCRE2's Unicode tables: they are there already, for
// the tokenizers.
#include "runtime/chat/jinja/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include "runtime/chat/jinja/case_tables.h"
#include "runtime/utf8.h"

namespace lockstep::jinja {
namespace {

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

template <std::size_t kSize>
bool contains(const CharacterRange (&ranges)[kSize], char32_t character) noexcept {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](const CharacterRange& range) {
    return character >= range.first && character <= range.last;
  });
}

template <std::size_t kSize>
char32_t mapped(const CaseRange (&ranges)[kSize], char32_t character) noexcept {
  const CaseRange* range =
      std::upper_bound(std::begin(ranges), std::end(ranges), character,
                       [](char32_t c, const CaseRange& candidate) { return c < candidate.first; });
  if (range == std::begin(ranges)) return character;
  --range;
  const bool inside = character <= range->last &&
                      (character - range->first) % static_cast<char32_t>(range->stride) == 0;
  if (!inside) return character;
  return static_cast<char32_t>(static_cast<std::int64_t>(character) + range->delta);
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};

// "Other" and "Separator": what repr() escapes.
const pcre2_code* unprintable() {
  static const std::unique_ptr<pcre2_code, CodeDeleter> code = [] {
    int error = 0;
    PCRE2_SIZE offset = 0;
    const std::string_view pattern = R"(\A[\p{C}\p{Z}])";
    return std::unique_ptr<pcre2_code, CodeDeleter>(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr));
  }();
  if (!code) throw std::bad_alloc();
  return code.get();
}

}  // namespace

std::size_t count_characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

char32_t next_character(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&] { return static_cast<unsigned char>(text[at++]); };
  const unsigned char lead = byte();
  if (lead < 0x80) return lead;
  int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t character = lead & (0x3Fu >> more);
  for (; more > 0 && at < text.size(); --more) character = (character << 6) | (byte() & 0x3Fu);
  return character;
}

char32_t previous_character(std::string_view text, std::size_t& at) noexcept {
  do {
    --at;
  } while (at > 0 && is_continuation(text[at]));
  std::size_t start = at;
  return next_character(text, start);
}

std::size_t byte_of_character(std::string_view text, std::size_t index) noexcept {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) next_character(text, at);
  return at;
}

bool is_ascii(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_space(char32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t character) {
  if (character < 0x7F) return character >= 0x20;
  std::string text;
  append_utf8(text, character);
  const std::unique_ptr<pcre2_match_data, MatchDeleter> match(pcre2_match_data_create(1, nullptr));
  if (!match) throw std::bad_alloc();
  return pcre2_match(unprintable(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                     PCRE2_NO_UTF_CHECK, match.get(), nullptr) < 0;
}

std::optional<char32_t> to_upper(char32_t character) noexcept {
  if (character < 0x80) return character >= 'a' && character <= 'z' ? character - 32 : character;
  if (contains(kNoUpper, character)) return std::nullopt;
  return mapped(kUpper, character);
}

std::optional<char32_t> to_lower(char32_t character) noexcept {
  if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + 32 : character;
  if (contains(kNoLower, character)) return std::nullopt;
  return mapped(kLower, character);
}

}  // namespace lockstep::jinja
