// Byte-level BPE on small vocabularies, and the cuts of the pre-tokenizers, which decide the ids as
// much as the merges do.
#include <random>
#include <string>
#include <vector>

#include "runtime/tokenizer/pretokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/vocabulary.h"

namespace {

using namespace lockstep;
using namespace std::string_literals;
using test::stand_ins;
using test::Vocabulary;
using Ids = std::vector<TokenId>;
using Words = std::vector<std::string>;

constexpr EncodeOptions kPlain{.add_bos = false, .parse_special = false};

Words words(const char* family, const std::string& text) {
  const PreTokenizer pre(*find_pretokenizer(family));
  std::vector<std::string_view> views;
  pre.split(text, views);
  return Words(views.begin(), views.end());
}

}  // namespace

TEST_CASE("the alphabet has a stand-in for each byte and gives each byte back") {
  CHECK(test::stand_in('A') == "A");
  CHECK(test::stand_in(' ') == "\xC4\xA0");   // U+0120
  CHECK(test::stand_in('\n') == "\xC4\x8A");  // U+010A
  CHECK(test::stand_in(0xAD) == "\xC5\x83");  // U+0143
  CHECK(test::stand_in(0xFF) == "\xC3\xBF");  // itself
  const auto tokenizer = test::load(test::bpe_vocabulary("gpt-2"));
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    CHECK(tokenizer->piece(byte) == text);
    CHECK(tokenizer->encode(text, kPlain) == Ids{byte});
  }
}

TEST_CASE("BPE merges in the order of the list, the leftmost of equals") {
  Vocabulary v = test::bpe_vocabulary("gpt-2");
  const TokenId bc = v.add_merge("b", "c");
  const TokenId ab = v.add_merge("a", "b");
  const TokenId aa = v.add_merge("a", "a");
  const TokenId abc = v.add_merge("a", "bc");
  const TokenId space_a = v.add_merge(stand_ins(" "), "a");
  const auto tokenizer = test::load(v);
  const auto encode = [&](const std::string& text) { return tokenizer->encode(text, kPlain); };
  CHECK(encode("abc") == Ids{abc});
  CHECK(encode("ab") == Ids{ab});
  CHECK(encode("abbc") == Ids{ab, bc});
  CHECK(encode("aaa") == Ids{aa, 'a'});
  CHECK(encode("b c") == Ids{'b', ' ', 'c'});  // words are merged apart
  CHECK(encode(" a") == Ids{space_a});
  CHECK(encode(" aa") == Ids{' ', aa});
  CHECK(tokenizer->piece(space_a) == " a");
  CHECK_FALSE(tokenizer->adds_bos());
  CHECK(encode("").empty());
}

TEST_CASE("a word that is a token skips the merges only where the family says so") {
  for (const std::string pre : {"llama-bpe", "gpt-2"}) {
    Vocabulary v = test::bpe_vocabulary(pre);
    const TokenId whole = v.add("abc");  // no merge leads here
    const TokenId ab = v.add_merge("a", "b");
    const TokenId control = v.add("xyz", TokenKind::control);
    const auto tokenizer = test::load(v);
    const Ids merged{ab, 'c'};
    CHECK(tokenizer->encode("abc", kPlain) == (pre == "llama-bpe" ? Ids{whole} : merged));
    CHECK(tokenizer->encode("xyz", kPlain) == Ids{'x', 'y', 'z'});
    CHECK(tokenizer->encode("xyz", {.add_bos = false}) == Ids{control});
  }
}

TEST_CASE("BOS of byte-level BPE is the family's default unless the file says otherwise") {
  Vocabulary v = test::bpe_vocabulary("llama-bpe");
  const TokenId begin = v.add("<|begin|>", TokenKind::control);
  v.more = [&](GgufWriter& w) {
    w.add_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(begin));
  };
  CHECK(test::load(v)->encode("a") == Ids{begin, 'a'});
  v.pre = "qwen2";
  CHECK(test::load(v)->encode("a") == Ids{'a'});
  CHECK(test::load(v)->bos() == begin);
}

TEST_CASE("added tokens are written as they are, ordinary ones in the alphabet") {
  Vocabulary v = test::bpe_vocabulary("gpt-2");
  const TokenId spaces = v.add("  ", TokenKind::user_defined);
  const TokenId accent = v.add("\xC3\xA9!", TokenKind::user_defined);
  const TokenId foreign = v.add("\xE6\x88\x91");  // not in the alphabet: kept as it is
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("a  \xC3\xA9!", kPlain) == Ids{'a', spaces, accent});
  CHECK(tokenizer->decode(Ids{'a', spaces, accent, foreign}) == "a  \xC3\xA9!\xE6\x88\x91");
}

TEST_CASE("any bytes survive byte-level BPE in every family") {
  for (const std::string pre :
       {"default", "gpt-2", "llama-bpe", "qwen2", "starcoder", "deepseek-coder"}) {
    Vocabulary v = test::bpe_vocabulary(pre);
    v.add_merge("a", "b");
    v.add_merge(stand_ins("\xC3"), stand_ins("\xA9"));
    v.add_merge(stand_ins("\xFF"), stand_ins("\xFF"));
    v.add_merge(stand_ins(" "), stand_ins(" "));
    v.add("<|x|>", TokenKind::control);
    const auto tokenizer = test::load(v);
    std::mt19937 random(9);
    const Words parts = {
        "ab", " ",   "\n",    "\xC3\xA9", "\xFF\xFF", "\xC3",         "\xE2\x80\x89",     "123",
        "'s", "'RE", "<|x|>", "!?",       "\0"s,      "\xE6\x88\x91", "\xF0\x9F\x98\x80", "\r"};
    for (int round = 0; round < 1500; ++round) {
      std::string text;
      for (std::size_t n = random() % 16; n > 0; --n) {
        text += random() % 4 ? parts[random() % parts.size()]
                             : std::string(1, static_cast<char>(random()));
      }
      if (tokenizer->decode(tokenizer->encode(text, kPlain)) != text) FAIL(pre << " " << round);
      if (tokenizer->decode(tokenizer->encode(text), true) != text) FAIL(pre << " " << round);
      std::string joined;
      for (const std::string& word : words(pre.c_str(), text)) {
        if (word.empty()) FAIL("an empty word");
        joined += word;
      }
      if (joined != text) FAIL(pre << ": words lose text in round " << round);
    }
  }
}

TEST_CASE("bytes that a vocabulary lacks become the replacement character") {
  Vocabulary v = test::bpe_vocabulary("qwen2");
  v.tokens[0xFF] = "unrelated";
  v.tokens[0xF5] = "[f5]";
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("a\xFF", kPlain) == Ids{'a', 0xEF, 0xBF, 0xBD});
  CHECK(tokenizer->decode(tokenizer->encode("\xF5-\xFE", kPlain)) == "\xEF\xBF\xBD-\xFE");

  v.tokens[0xBF] = "gone";
  v.more = [](GgufWriter& w) { w.add_u32("tokenizer.ggml.unknown_token_id", 'u'); };
  CHECK(test::load(v)->encode("a\xFF\xBF", kPlain) == Ids{'a', 'u', 'u'});
}

TEST_CASE("GPT-2 cuts words with one space in front, contractions and runs of a kind") {
  CHECK(words("gpt-2", "Hello world") == Words{"Hello", " world"});
  CHECK(words("gpt-2", "I'm it's 'RE") == Words{"I", "'m", " it", "'s", " '", "RE"});
  CHECK(words("gpt-2", "a  b\n\nc ") == Words{"a", " ", " b", "\n", "\n", "c", " "});
  CHECK(words("gpt-2", "x12345!?y") == Words{"x", "12345", "!?", "y"});
  CHECK(words("gpt-2", "\xC3\xA9t\xC3\xA9 \xE6\x88\x91") ==
        Words{"\xC3\xA9t\xC3\xA9", " \xE6\x88\x91"});
  CHECK(words("mpt", "a1") == Words{"a", "1"});
  CHECK(words("gpt-2", "").empty());
}

TEST_CASE("llama 3 and qwen 2 differ in the length of numbers alone") {
  CHECK(words("llama-bpe", "1234567") == Words{"123", "456", "7"});
  CHECK(words("qwen2", "1234") == Words{"1", "2", "3", "4"});
  for (const char* family : {"llama-bpe", "qwen2"}) {
    CHECK(words(family, "Hello, y'ALL we'Ve") == Words{"Hello", ",", " y", "'ALL", " we", "'Ve"});
    CHECK(words(family, "a  b") == Words{"a", " ", " b"});
    CHECK(words(family, "a \n\n  b") == Words{"a", " \n\n", " ", " b"});
    CHECK(words(family, "x!!\n\ny") == Words{"x", "!!\n\n", "y"});
    CHECK(words(family, "(foo) \tbar") == Words{"(foo", ")", " ", "\tbar"});
    CHECK(words(family, "end   ") == Words{"end", "   "});
  }
}

TEST_CASE("starcoder takes digits one by one, deepseek-coder cuts lines and scripts") {
  CHECK(words("starcoder", "ab 12c") == Words{"ab", " ", "1", "2", "c"});
  CHECK(words("deepseek-coder", "a\nb c.d") == Words{"a", "\n", "b", " c", ".", "d"});
  CHECK(words("deepseek-coder", "x 12") == Words{"x", " ", "1", "2"});
  CHECK(words("default", "a==b 1234") == Words{"a", "==", "b", " ", "123", "4"});
}

TEST_CASE("white space is what Unicode says, not what PCRE2 adds") {
  const std::string mongolian = "\xE1\xA0\x8E";  // U+180E is a format character
  const std::string thin = "\xE2\x80\x89";       // U+2009 is white space
  CHECK(words("gpt-2", "a " + mongolian + "b") == Words{"a", " " + mongolian, "b"});
  CHECK(words("gpt-2", "a" + thin + thin + "b") == Words{"a", thin, thin, "b"});
  CHECK(words("llama-bpe", "a" + thin + "\nb") == Words{"a", thin + "\n", "b"});
}

TEST_CASE("broken UTF-8 stands in words of its own") {
  CHECK(words("gpt-2",
              "ab\xFF\xFE"
              "cd") == Words{"ab", "\xFF\xFE", "cd"});
  CHECK(words("llama-bpe", "\xC3") == Words{"\xC3"});
  CHECK(words("qwen2", "\xE2\x80 \xC3\xA9") == Words{"\xE2\x80", " \xC3\xA9"});
}

TEST_CASE("long runs are cut without limits") {
  const std::string spaces(300000, ' ');
  CHECK(words("llama-bpe", spaces + "x") == Words{spaces.substr(1), " x"});
  CHECK(words("gpt-2", spaces) == Words{spaces});
  const std::string letters(300000, 'a');
  CHECK(words("qwen2", letters + "!") == Words{letters, "!"});
  Vocabulary v = test::bpe_vocabulary("gpt-2");
  const TokenId aa = v.add_merge("a", "a");
  CHECK(test::load(v)->encode(letters, kPlain) == Ids(150000, aa));
}

TEST_CASE("pre-tokenizer names are known or null") {
  CHECK(find_pretokenizer("gpt-2") != nullptr);
  CHECK(find_pretokenizer("llama-bpe")->ignore_merges);
  CHECK(find_pretokenizer("nonsense") == nullptr);
  CHECK(find_pretokenizer("") == nullptr);
  CHECK(known_pretokenizers().find("qwen2") != std::string::npos);
}
