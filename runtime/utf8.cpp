// The UTF-8 rules. One function, next_utf8, knows the byte ranges of the Unicode standard (table
// 3-7); the others walk with it, so that a stream, a prompt and a message agree about every broken
// byte.
#include "runtime/utf8.h"

#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

constexpr unsigned char byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

Utf8Step next_utf8(std::string_view rest) noexcept {
  const unsigned char lead = byte_at(rest, 0);
  if (lead < 0x80) return {Utf8Status::valid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Status::invalid, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range rules out overlong forms, surrogates and values above U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == rest.size()) return {Utf8Status::incomplete, i};
    if (byte_at(rest, i) < low || byte_at(rest, i) > high) return {Utf8Status::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Status::valid, length};
}

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.status != Utf8Status::valid) break;
    at += step.length;
  }
  return at;
}

void append_utf8(std::string& text, char32_t character) {
  const auto tail = [&](int shift) {
    text.push_back(static_cast<char>(0x80 | ((character >> shift) & 0x3F)));
  };
  if (character < 0x80) {
    text.push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    text.push_back(static_cast<char>(0xC0 | (character >> 6)));
    tail(0);
  } else if (character < 0x10000) {
    text.push_back(static_cast<char>(0xE0 | (character >> 12)));
    tail(6), tail(0);
  } else {
    text.push_back(static_cast<char>(0xF0 | (character >> 18)));
    tail(12), tail(6), tail(0);
  }
}

std::string sanitize_utf8(std::string_view text) {
  Utf8Stream stream;
  std::string out = stream.push(text);
  return out += stream.flush();
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    pending_.clear();
    bytes = joined += bytes;
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t valid = valid_utf8_prefix(bytes);
    out += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const Utf8Step step = next_utf8(bytes);
    if (step.status == Utf8Status::incomplete) {
      pending_ = bytes;
      break;
    }
    out += kReplacement;
    bytes.remove_prefix(step.length);
  }
  return out;
}

std::string Utf8Stream::flush() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacement);
}

}  // namespace lockstep
