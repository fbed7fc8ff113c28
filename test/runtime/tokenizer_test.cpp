// SentencePiece tokenizers on small vocabularies made for each rule, and what all tokenizers share:
// special tokens, BOS, end marks, decoding.
#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockstep/error.h"
#include "support/catch.h"
#include "support/vocabulary.h"

namespace {

using namespace lockstep;
using namespace std::string_literals;
using test::kFirstByte;
using test::Vocabulary;
using Ids = std::vector<TokenId>;

const std::string kSpace = "\xE2\x96\x81";
constexpr EncodeOptions kPlain{.add_bos = false, .parse_special = false};
constexpr EncodeOptions kSpecial{.add_bos = false, .parse_special = true};

void no_space_prefix(GgufWriter& writer) {
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
}

Ids bytes_of(const std::string& text) {
  Ids ids;
  for (const char c : text) ids.push_back(kFirstByte + static_cast<unsigned char>(c));
  return ids;
}

// Letters, spaces, special and control texts, valid and broken UTF-8; without U+2581, which
// SentencePiece cannot tell from a space.
std::string hostile_text(std::mt19937& random) {
  static const std::vector<std::string> parts = {"a",
                                                 "b",
                                                 "ab",
                                                 "abc",
                                                 " ",
                                                 "  ",
                                                 "\n",
                                                 "<s>",
                                                 "</s>",
                                                 "<unk>",
                                                 "<0x41>",
                                                 "<|x|>",
                                                 "<|",
                                                 "\xC3\xA9",
                                                 "\xE6\x88\x91",
                                                 "\xF0\x9F\x98\x80",
                                                 "\x80",
                                                 "\xC3",
                                                 "\xE2\x96",
                                                 "\xF0\x9F",
                                                 "\xFF",
                                                 "\xED\xA0\x80",
                                                 "\0"s,
                                                 "12",
                                                 "'s",
                                                 "\t",
                                                 "\r\n"};
  std::string text;
  for (std::size_t i = random() % 20; i > 0; --i) {
    text += random() % 4 == 0 ? std::string(1, static_cast<char>(random()))
                              : parts[random() % parts.size()];
  }
  while (text.find(kSpace) != std::string::npos) text.erase(text.find(kSpace), 1);
  return text;
}

}  // namespace

TEST_CASE("SPM merges the best score first, the leftmost of equals") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  const TokenId a = v.add("a", TokenKind::normal, -10);
  const TokenId b = v.add("b", TokenKind::normal, -10);
  const TokenId c = v.add("c", TokenKind::normal, -10);
  const TokenId ab = v.add("ab", TokenKind::normal, -2);
  const TokenId bc = v.add("bc", TokenKind::normal, -1);
  const TokenId aa = v.add("aa", TokenKind::normal, -3);
  const TokenId aaaa = v.add("aaaa", TokenKind::normal, -9);
  const TokenId abc = v.add("abc", TokenKind::normal, -20);
  const auto tokenizer = test::load(v);
  const auto encode = [&](const std::string& text) { return tokenizer->encode(text, kPlain); };
  CHECK(encode("a") == Ids{a});
  CHECK(encode("ab") == Ids{ab});
  CHECK(encode("abb") == Ids{ab, b});
  CHECK(encode("abc") == Ids{abc});  // bc first, then a + bc
  CHECK(encode("cab") == Ids{c, ab});
  CHECK(encode("abcab") == Ids{abc, ab});
  CHECK(encode("bbc") == Ids{b, bc});
  CHECK(encode("aaa") == Ids{aa, a});  // the left pair of two equal ones
  CHECK(encode("aaaa") == Ids{aaaa});
  CHECK(encode("aaaaa") == Ids{aaaa, a});
}

TEST_CASE("SPM spells what is no token in bytes, broken text too") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  const TokenId e = v.add("\xC3\xA9");
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("\xC3\xA9", kPlain) == Ids{e});
  CHECK(tokenizer->encode("x\xC3\xA8", kPlain) == bytes_of("x\xC3\xA8"));
  CHECK(tokenizer->encode("\xC3", kPlain) == bytes_of("\xC3"));
  CHECK(tokenizer->encode("\xA9\xC3\xA9\xC3", kPlain) ==
        Ids{kFirstByte + 0xA9, e, kFirstByte + 0xC3});
  CHECK(tokenizer->encode("\0"s, kPlain) == bytes_of("\0"s));
  CHECK(tokenizer->piece(kFirstByte + 0xC3) == "\xC3");
  CHECK(tokenizer->decode(bytes_of("\xFF\0x"s)) == "\xFF\0x"s);
}

TEST_CASE("SPM without byte tokens writes one unknown token for a character") {
  Vocabulary v;
  v.add("<unk>", TokenKind::unknown);
  const TokenId a = v.add("a");
  v.more = no_space_prefix;
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("a\xE6\x88\x91"
                          "a",
                          kPlain) == Ids{a, 0, a});
  CHECK(tokenizer->decode(Ids{a, 0}) == "a\xEF\xBF\xBD");
  CHECK(tokenizer->decode(Ids{a, 0}, true) == "a<unk>");
  CHECK_FALSE(tokenizer->adds_bos());  // nothing here is a BOS
  CHECK(tokenizer->bos() == kNoToken);
  CHECK(tokenizer->encode("") == Ids{});
}

TEST_CASE("SPM puts the space prefix where text begins, and decoding takes it away") {
  Vocabulary v = test::spm_vocabulary();
  const TokenId space = v.add(kSpace, TokenKind::normal, -5);
  const TokenId a = v.add("a", TokenKind::normal, -5);
  const TokenId space_a = v.add(kSpace + "a", TokenKind::normal, -1);
  const TokenId x = v.add("<|x|>", TokenKind::control);
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("a") == Ids{1, space_a});
  CHECK(tokenizer->encode(" a") == Ids{1, space, space_a});
  CHECK(tokenizer->encode("aa a", kSpecial) == Ids{space_a, a, space_a});
  CHECK(tokenizer->encode("a<|x|>a<|x|> a", kSpecial) ==
        Ids{space_a, x, space_a, x, space, space_a});
  CHECK(tokenizer->encode("<|x|>", kSpecial) == Ids{x});
  CHECK(tokenizer->encode("", kSpecial).empty());
  CHECK(tokenizer->decode(Ids{1, space_a, a, space_a}) == "aa a");
  CHECK(tokenizer->decode(Ids{space, space_a}) == " a");
  CHECK(tokenizer->decode(Ids{space_a, x, space, space_a}, true) == "a<|x|> a");
  CHECK(tokenizer->piece(space_a) == " a");

  v.more = no_space_prefix;
  const auto without = test::load(v);
  CHECK(without->encode("a<|x|>a a") == Ids{1, a, x, a, space_a});
  CHECK(without->decode(Ids{1, space_a}) == " a");
}

TEST_CASE("plain text never becomes a control, byte or unknown token") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  for (const char* step : {"<", ">", "s", "<s", "/",   "</",   "</s",   "0",  "x",   "4",   "1",
                           "u", "n", "k", "<0", "<0x", "<0x4", "<0x41", "<u", "<un", "<unk"}) {
    v.add(step);
  }
  const auto tokenizer = test::load(v);
  for (const std::string text : {"<s>", "</s>", "<unk>", "<0x41>"}) {
    const Ids ids = tokenizer->encode(text, kPlain);
    CHECK(ids.size() == 2);
    for (const TokenId id : ids) CHECK(tokenizer->kind(id) == TokenKind::normal);
    CHECK(tokenizer->decode(ids) == text);
  }
  CHECK(tokenizer->encode("<s>", kSpecial) == Ids{1});
  CHECK(tokenizer->encode("</s>x", kSpecial).front() == 2);
  CHECK(tokenizer->encode("<unk>", kSpecial) == Ids{0});
  CHECK(tokenizer->encode("<0x41>", kSpecial).size() == 2);
}

TEST_CASE("special tokens are found from left to right, the longest first") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  const TokenId x = v.add("<x>", TokenKind::control);
  const TokenId xx = v.add("<x><x>", TokenKind::control);
  const TokenId y = v.add("<x>y", TokenKind::user_defined);
  const TokenId tabs = v.add("\t\t", TokenKind::user_defined);
  const TokenId tab = v.add("\t", TokenKind::user_defined);
  v.add("", TokenKind::control);
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("<x>", kSpecial) == Ids{x});
  CHECK(tokenizer->encode("<x><x>", kSpecial) == Ids{xx});
  CHECK(tokenizer->encode("<x><x><x>y", kSpecial) == Ids{xx, y});
  CHECK(tokenizer->encode("<x><x>y", kSpecial) == Ids{xx, kFirstByte + 'y'});
  CHECK(tokenizer->encode("<<x>", kSpecial) == Ids{kFirstByte + '<', x});
  CHECK(tokenizer->encode("<x", kSpecial) == bytes_of("<x"));
  // User-defined tokens are vocabulary, not commands.
  CHECK(tokenizer->encode("<x>", kPlain) == bytes_of("<x>"));
  CHECK(tokenizer->encode("<x>y", kPlain) == Ids{y});
  CHECK(tokenizer->encode("\t\t\tz", kPlain) == Ids{tabs, tab, kFirstByte + 'z'});
  CHECK(tokenizer->decode(Ids{x, y, tabs}) == "<x>y\t\t");
  CHECK(tokenizer->decode(Ids{x, y, tabs}, true) == "<x><x>y\t\t");
}

TEST_CASE("SPM tokens that are only steps come apart again") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  const TokenId a = v.add("a", TokenKind::normal, -9);
  const TokenId b = v.add("b", TokenKind::normal, -9);
  const TokenId c = v.add("c", TokenKind::normal, -9);
  const TokenId ab = v.add("ab", TokenKind::unused, -1);
  const TokenId abab = v.add("abab", TokenKind::unused, -2);
  const TokenId abc = v.add("abc", TokenKind::normal, -3);
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->encode("ab", kPlain) == Ids{a, b});
  CHECK(tokenizer->encode("abc", kPlain) == Ids{abc});
  CHECK(tokenizer->encode("abab", kPlain) == Ids{a, b, a, b});
  CHECK(tokenizer->encode("cab", kPlain) == Ids{c, a, b});
  CHECK(tokenizer->decode(Ids{ab, abab}) == "ababab");
}

TEST_CASE("merging word by word gives what merging the whole text gives") {
  std::mt19937 random(3);
  Vocabulary v = test::spm_vocabulary();
  for (const std::string letter : {"a", "b", "c"}) v.add(letter, TokenKind::normal, -50);
  v.add(kSpace, TokenKind::normal, -50);
  for (int i = 0; i < 60; ++i) {
    std::string text = random() % 2 ? kSpace : "";
    for (std::size_t n = 1 + random() % 4; n > 0; --n)
      text += static_cast<char>('a' + random() % 3);
    if (std::find(v.tokens.begin(), v.tokens.end(), text) == v.tokens.end()) {
      v.add(text, TokenKind::normal, -static_cast<float>(random() % 20));
    }
  }
  v.add(kSpace + kSpace, TokenKind::normal, -4);
  const auto apart = test::load(v);
  const TokenId crossing = v.add("q" + kSpace, TokenKind::normal, -60);  // no text here has a q
  const auto whole = test::load(v);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += "abc  "[random() % 5];
    if (apart->encode(text) != whole->encode(text)) FAIL(text);
    if (apart->decode(apart->encode(text)) != text) FAIL(text);
  }
  CHECK(whole->encode("q q", kPlain) == Ids{whole->find(kSpace), crossing, kFirstByte + 'q'});
}

TEST_CASE("any bytes survive encoding and decoding, with and without a space prefix") {
  for (const bool prefix : {true, false}) {
    Vocabulary v = test::spm_vocabulary();
    v.add(kSpace, TokenKind::normal, -5);
    v.add("ab", TokenKind::normal, -1);
    v.add(kSpace + "a", TokenKind::normal, -2);
    v.add("abc", TokenKind::unused, -1);
    v.add("\xC3\xA9", TokenKind::normal, -2);
    v.add("<|x|>", TokenKind::control);
    v.add("  ", TokenKind::user_defined);
    v.more = [&](GgufWriter& writer) {
      writer.add_bool("tokenizer.ggml.add_space_prefix", prefix);
    };
    const auto tokenizer = test::load(v);
    std::mt19937 random(prefix ? 1 : 2);
    for (int round = 0; round < 3000; ++round) {
      const std::string text = hostile_text(random);
      const Ids special = tokenizer->encode(text);
      const Ids plain = tokenizer->encode(text, kPlain);
      if (special.front() != tokenizer->bos()) FAIL("no BOS");
      // "<unk>" as a token is written as text only with render_special.
      if (tokenizer->decode(special, true) != "<s>" + text) FAIL("special, round " << round);
      if (tokenizer->decode(plain) != text) FAIL("plain, round " << round);
      for (const TokenId id : plain) {
        if (tokenizer->kind(id) == TokenKind::control) FAIL("a control token from plain text");
      }
    }
  }
}

TEST_CASE("a long word and a long text are encoded completely") {
  Vocabulary v = test::spm_vocabulary();
  v.more = no_space_prefix;
  std::string run = "a";
  v.add(run, TokenKind::normal, -9);
  for (int i = 1; i <= 6; ++i) {
    run += run;
    v.add(run, TokenKind::normal, static_cast<float>(-i));
  }
  const auto tokenizer = test::load(v);
  const std::string word(1 << 20, 'a');
  CHECK(tokenizer->encode(word, kPlain) == Ids((1 << 20) / 64, tokenizer->find(run)));
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "aaa aa";
  CHECK((tokenizer->decode(tokenizer->encode(text)) == text));  // in parentheses: not to be printed
}

TEST_CASE("BOS is added if the file asks for it and has one") {
  const auto load_with = [](std::function<void(GgufWriter&)> more) {
    Vocabulary v = test::spm_vocabulary();
    v.more = std::move(more);
    return test::load(v);
  };
  CHECK(load_with({})->encode("", {}) == Ids{1});
  CHECK(load_with({})->eos() == 2);
  CHECK(load_with([](GgufWriter& w) { w.add_bool("tokenizer.ggml.add_bos_token", false); })
            ->encode("", {})
            .empty());
  CHECK(load_with([](GgufWriter& w) {
          w.add_u32("tokenizer.ggml.bos_token_id", 2);
        })->encode("", {}) == Ids{2});
  const auto none =
      load_with([](GgufWriter& w) { w.add_u32("tokenizer.ggml.bos_token_id", 0xFFFFFFFF); });
  CHECK(none->bos() == kNoToken);
  CHECK(none->encode("", {}).empty());
  CHECK(load_with({})->encode("", {.add_bos = false}).empty());
}

TEST_CASE("generation ends at the marks that the file names and at the well-known ones") {
  Vocabulary v = test::spm_vocabulary();
  const TokenId im_end = v.add("<|im_end|>", TokenKind::control);
  const TokenId eot = v.add("[eot]", TokenKind::control);
  const TokenId eom = v.add("[eom]", TokenKind::control);
  const TokenId user_end = v.add("<|end|>", TokenKind::user_defined);
  const TokenId fake = v.add("<|eot_id|>", TokenKind::normal);
  const TokenId other = v.add("<|other|>", TokenKind::control);
  v.more = [&](GgufWriter& w) {
    w.add_u32("tokenizer.ggml.eos_token_id", 2);
    w.add_u32("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(eot));
    w.add_u32("tokenizer.ggml.eom_token_id", static_cast<std::uint32_t>(eom));
    w.add_u32("tokenizer.ggml.padding_token_id", 0xFFFFFFFF);
  };
  const auto tokenizer = test::load(v);
  for (const TokenId id : {2, im_end, eot, eom, user_end}) CHECK(tokenizer->ends_generation(id));
  for (const TokenId id : {0, 1, 3, fake, other, kNoToken, 100000}) {
    CHECK_FALSE(tokenizer->ends_generation(id));
  }
}

TEST_CASE("tokens are found by their text, and ids out of range are no surprise") {
  Vocabulary v = test::spm_vocabulary();
  const TokenId a = v.add("a");
  v.add("");
  v.add("");  // padding may repeat
  const auto tokenizer = test::load(v);
  CHECK(tokenizer->find("a") == a);
  CHECK(tokenizer->find("<0x00>") == kFirstByte);
  CHECK(tokenizer->find("nothing") == kNoToken);
  CHECK(tokenizer->find("") == kNoToken);
  CHECK(tokenizer->size() == 262);
  CHECK(tokenizer->text(a) == "a");
  CHECK_THROWS_AS(tokenizer->piece(-1), std::out_of_range);
  CHECK_THROWS_AS(tokenizer->piece(262), std::out_of_range);
  // Refused by its size, before the first byte is looked at.
  const std::string_view too_long("x", (std::size_t{1} << 29) + 1);
  CHECK_THROWS_AS(tokenizer->encode(too_long), Error);
}

TEST_CASE("threads share a tokenizer") {
  for (const bool spm : {true, false}) {
    Vocabulary v = spm ? test::spm_vocabulary() : test::bpe_vocabulary("qwen2");
    if (spm) v.add("ab", TokenKind::normal, -1);
    if (!spm) v.add_merge("a", "b");
    const auto tokenizer = test::load(v);
    const std::string text = "ab abab <s> \xC3\xA9 12 ab";
    const Ids expected = tokenizer->encode(text);
    std::vector<int> differences(4, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) differences[t] += tokenizer->encode(text) != expected ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(differences == std::vector<int>{0, 0, 0, 0});
  }
}
