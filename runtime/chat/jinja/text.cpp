// See text.h.
#include "runtime/chat/jinja/text.h"

#include <algorithm>

#include "runtime/chat/jinja/unicode.h"
#include "runtime/chat/jinja/workspace.h"
#include "runtime/utf8.h"

namespace lockstep::jinja {
namespace {

constexpr std::size_t kShort = 16;  // bytes of a part that plain search is quick enough for

// Knuth, Morris and Pratt: never looks at a character of the text twice, however the part repeats
// itself. Iterators, so that it searches from both ends.
template <typename Iterator>
Iterator search(Iterator text, Iterator text_end, Iterator part, std::size_t size) {
  const auto at = [&](std::size_t i) { return part[static_cast<std::ptrdiff_t>(i)]; };
  std::vector<std::size_t> shorter(size, 0);  // of each beginning, the longest that also ends it
  for (std::size_t i = 1, k = 0; i < size; ++i) {
    while (k > 0 && at(i) != at(k)) k = shorter[k - 1];
    if (at(i) == at(k)) ++k;
    shorter[i] = k;
  }
  std::size_t k = 0;
  for (; text != text_end; ++text) {
    while (k > 0 && *text != at(k)) k = shorter[k - 1];
    if (*text == at(k)) ++k;
    if (k == size) return text - static_cast<std::ptrdiff_t>(size - 1);
  }
  return text_end;
}

void add_part(Workspace& workspace, std::vector<std::string_view>& parts, std::string_view part) {
  workspace.charge_bytes(2 * sizeof part);  // vectors grow by doubling
  parts.push_back(part);
}

bool is_line_end(char32_t c) noexcept {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::optional<std::string> mapped(std::string_view text,
                                  std::optional<char32_t> (*map)(char32_t) noexcept) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto character = map(next_character(text, at));
    if (!character) return std::nullopt;
    append_utf8(out, *character);
  }
  return out;
}

}  // namespace

std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side) {
  std::vector<char32_t> given;
  for (std::size_t at = 0; characters && at < characters->size();) {
    given.push_back(next_character(*characters, at));
  }
  std::sort(given.begin(), given.end());
  const auto goes = [&](char32_t c) {
    return characters ? std::binary_search(given.begin(), given.end(), c) : is_space(c);
  };
  std::size_t begin = 0, end = text.size();
  while (side != Side::right && begin < end) {
    std::size_t at = begin;
    if (!goes(next_character(text, at))) break;
    begin = at;
  }
  while (side != Side::left && end > begin) {
    std::size_t at = end;
    if (!goes(previous_character(text, at))) break;
    end = at;
  }
  return text.substr(begin, end - begin);
}

std::size_t find_part(std::string_view text, std::string_view part, std::size_t from) {
  if (part.size() <= kShort || from > text.size()) return text.find(part, from);
  const char* begin = text.data() + from;
  const char* end = text.data() + text.size();
  const char* found = search(begin, end, part.data(), part.size());
  return found == end ? std::string_view::npos : static_cast<std::size_t>(found - text.data());
}

std::size_t rfind_part(std::string_view text, std::string_view part) {
  if (part.size() <= kShort) return text.rfind(part);
  const auto found = search(text.rbegin(), text.rend(), part.rbegin(), part.size());
  if (found == text.rend()) return std::string_view::npos;
  return static_cast<std::size_t>(text.rend() - found) - part.size();
}

std::vector<std::string_view> split_space(Workspace& workspace, std::string_view text,
                                          std::int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  const Side near = from_right ? Side::right : Side::left;
  std::string_view rest = strip(text, std::nullopt, near);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      add_part(workspace, parts, rest);  // its far end keeps its white space
      break;
    }
    std::size_t at = from_right ? rest.size() : 0;
    std::size_t word = at;
    while (from_right ? at > 0 : at < rest.size()) {
      if (is_space(from_right ? previous_character(rest, at) : next_character(rest, at))) break;
      word = at;
    }
    add_part(workspace, parts, from_right ? rest.substr(word) : rest.substr(0, word));
    rest = strip(from_right ? rest.substr(0, word) : rest.substr(word), std::nullopt, near);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(Workspace& workspace, std::string_view text,
                                       std::string_view separator, std::int64_t limit,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t at = from_right ? rfind_part(rest, separator) : find_part(rest, separator);
    if (at == std::string_view::npos) break;
    const std::size_t behind = at + separator.size();
    add_part(workspace, parts, from_right ? rest.substr(behind) : rest.substr(0, at));
    rest = from_right ? rest.substr(0, at) : rest.substr(behind);
  }
  add_part(workspace, parts, rest);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(Workspace& workspace, std::string_view text,
                                          bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t c = next_character(text, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    add_part(workspace, lines, text.substr(begin, (keep_ends ? at : here) - begin));
    begin = at;
  }
  if (begin < text.size()) add_part(workspace, lines, text.substr(begin));
  return lines;
}

std::size_t count_parts(std::string_view text, std::string_view part) {
  if (part.empty()) return count_characters(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = find_part(text, part); at != std::string_view::npos;
       at = find_part(text, part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string replace(std::string_view text, std::string_view old, std::string_view with,
                    std::int64_t limit) {
  std::string out;
  std::size_t at = 0;
  for (std::int64_t done = 0; limit < 0 || done < limit; ++done) {
    if (old.empty()) {
      // In front of every character and at the end.
      out += with;
      if (at == text.size()) return out;
      const std::size_t begin = at;
      next_character(text, at);
      out += text.substr(begin, at - begin);
      continue;
    }
    const std::size_t found = find_part(text, old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += with;
    at = found + old.size();
  }
  return out += text.substr(at);
}

std::string pick(std::string_view text, std::int64_t start, std::int64_t step, std::size_t count) {
  if (count == 0) return {};
  std::size_t at = byte_of_character(text, static_cast<std::size_t>(start));
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t end = at;
    next_character(text, end);
    out += text.substr(at, end - at);
    if (i + 1 == count) break;
    for (std::int64_t skip = 0; skip < step; ++skip) next_character(text, at);
    for (std::int64_t skip = 0; skip > step; --skip) previous_character(text, at);
  }
  return out;
}

std::optional<std::string> upper(std::string_view text) {
  constexpr std::string_view kSharpS = "\xC3\x9F";  // the one common character of the kind
  if (text.find(kSharpS) == std::string_view::npos) return mapped(text, to_upper);
  return mapped(replace(text, kSharpS, "SS", -1), to_upper);
}

std::optional<std::string> lower(std::string_view text) { return mapped(text, to_lower); }

std::optional<std::string> capitalize(std::string_view text) {
  if (text.empty()) return std::string();
  std::size_t first = 0;
  next_character(text, first);
  std::optional<std::string> out = mapped(text.substr(0, first), to_upper);
  const std::optional<std::string> rest = lower(text.substr(first));
  if (!out || !rest) return std::nullopt;
  return *out + *rest;
}

std::optional<std::string> title_words(std::string_view text) {
  const auto separates = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    const bool separator = separates(c);
    const auto character = separator ? c : inside ? to_lower(c) : to_upper(c);
    if (!character) return std::nullopt;
    append_utf8(out, *character);
    inside = !separator;
  }
  return out;
}

std::string title_letters(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_lower = c >= 'a' && c <= 'z';
    if (is_upper && inside) {
      out += static_cast<char>(c + 32);
    } else if (is_lower && !inside) {
      out += static_cast<char>(c - 32);
    } else {
      out += c;
    }
    inside = is_upper || is_lower;
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace lockstep::jinja
