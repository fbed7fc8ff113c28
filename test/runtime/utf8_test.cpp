// UTF-8 rules: every two-byte and many longer inputs against the definition, known replacements,
// and a stream that must not care where it is cut.
#include "runtime/utf8.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"

namespace {

using namespace lockstep;
using namespace std::string_literals;

const std::string kBad = "\xEF\xBF\xBD";

Utf8Step step(const std::string& text) { return next_utf8(text); }

}  // namespace

TEST_CASE("every character is valid with its own length, and nothing else is") {
  std::size_t valid = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(text, c);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    const std::size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (text.size() != length) FAIL("length of " << static_cast<std::uint32_t>(c));
    const Utf8Step found = step(text);
    if ((found.status == Utf8Status::valid) == surrogate) FAIL(static_cast<std::uint32_t>(c));
    if (!surrogate && found.length != length) FAIL(static_cast<std::uint32_t>(c));
    valid += found.status == Utf8Status::valid ? 1 : 0;
  }
  CHECK(valid == 0x110000 - 0x800);
  // All texts of three bytes that are one character: exactly U+0800 to U+FFFF without surrogates.
  std::size_t three = 0;
  for (unsigned bits = 0; bits < 1u << 24; ++bits) {
    const char bytes[3] = {static_cast<char>(bits >> 16), static_cast<char>(bits >> 8),
                           static_cast<char>(bits)};
    const Utf8Step found = next_utf8(std::string_view(bytes, 3));
    three += found.status == Utf8Status::valid && found.length == 3 ? 1 : 0;
  }
  CHECK(three == 0x10000 - 0x800 - 0x800);
}

TEST_CASE("broken and unfinished characters are told apart") {
  CHECK(step("\x80"s).status == Utf8Status::invalid);
  CHECK(step("\xC0\x80"s).status == Utf8Status::invalid);
  CHECK(step("\xF5"s).status == Utf8Status::invalid);
  CHECK(step("\xFF"s).status == Utf8Status::invalid);
  CHECK(step("\xE2"s).status == Utf8Status::incomplete);
  CHECK(step("\xF0\x9F\x98"s).status == Utf8Status::incomplete);
  CHECK(step("\xF0\x9F\x98"s).length == 3);
  CHECK(step("\xF0\x9F"
             "A"s)
            .status == Utf8Status::invalid);
  CHECK(step("\xF0\x9F"
             "A"s)
            .length == 2);
  CHECK(step("\xED\xA0\x80"s).length == 1);      // a surrogate: broken at its second byte
  CHECK(step("\xE0\x80\x80"s).length == 1);      // overlong
  CHECK(step("\xF4\x90\x80\x80"s).length == 1);  // above U+10FFFF
  CHECK(valid_utf8_prefix("ab\xC3\xA9\xFFx") == 4);
  CHECK(valid_utf8_prefix("") == 0);
  CHECK(valid_utf8_prefix("\xC3") == 0);
}

TEST_CASE("sanitizing replaces each broken part once and keeps the rest") {
  CHECK(sanitize_utf8("") == "");
  CHECK(sanitize_utf8("plain \xC3\xA9 \xF0\x9F\x98\x80") == "plain \xC3\xA9 \xF0\x9F\x98\x80");
  CHECK(sanitize_utf8("a\0b"s) == "a\0b"s);
  // The Unicode standard's own example (section 3.9, table 3-8).
  CHECK(sanitize_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") ==
        "a" + kBad + kBad + kBad + "b" + kBad + "c" + kBad + kBad + "d");
  CHECK(sanitize_utf8("\xF0\x9F") == kBad);
}

TEST_CASE("a stream gives the sanitized text wherever it is cut") {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a",    "\xC3\xA9", "\xE2\x96\x81", "\xF0\x9F\x98\x80",
                                          "\x80", "\xC3",     "\xE2\x96",     "\xF0\x9F",
                                          "\xFF", "\xED\xA0", "\xF4\x90",     " "};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t i = random() % 8; i > 0; --i) text += parts[random() % parts.size()];
    Utf8Stream stream;
    std::string joined;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + random() % 3;
      const std::string piece = stream.push(std::string_view(text).substr(at, length));
      if (valid_utf8_prefix(piece) != piece.size()) FAIL("an incomplete character was handed out");
      joined += piece;
      at += length;
    }
    joined += stream.flush();
    if (joined != sanitize_utf8(text)) FAIL("round " << round);
    if (!stream.flush().empty()) FAIL("flushing twice gave something");
  }
}

TEST_CASE("a stream waits for the rest of a character and no longer") {
  Utf8Stream stream;
  CHECK(stream.push("\xF0").empty());
  CHECK(stream.push("\x9F\x98").empty());
  CHECK(stream.push("") == "");
  CHECK(stream.push("\x80x") == "\xF0\x9F\x98\x80x");
  CHECK(stream.push("\xE2") == "");
  CHECK(stream.push("A") == kBad + "A");
  CHECK(stream.push("\xE2\x96") == "");
  CHECK(stream.flush() == kBad);
  CHECK(stream.push("ok") == "ok");
  CHECK(stream.flush() == "");
}
