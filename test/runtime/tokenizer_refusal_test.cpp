// Vocabularies that are damaged: each is refused as a bad model, with the key that is wrong.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/vocabulary.h"

namespace {

using namespace lockstep;
using test::Vocabulary;

std::string refusal(const GgufFile& file) {
  try {
    Tokenizer::load(file);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_model);
    return error.what();
  }
  return "accepted";
}

std::string refusal(const Vocabulary& v) { return refusal(test::open_vocabulary(v)); }

// A vocabulary with one thing changed.
std::string spm(const std::function<void(Vocabulary&)>& damage) {
  Vocabulary v = test::spm_vocabulary();
  damage(v);
  return refusal(v);
}
std::string bpe(const std::function<void(Vocabulary&)>& damage) {
  Vocabulary v = test::bpe_vocabulary("gpt-2");
  v.add_merge("a", "b");
  damage(v);
  return refusal(v);
}
std::string with(const std::function<void(GgufWriter&)>& more) {
  return spm([&](Vocabulary& v) { v.more = more; });
}

std::string raw(const std::function<void(GgufWriter&)>& keys) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  keys(writer);
  return refusal(test::open_gguf(writer));
}

#define CHECK_NAMES(WHAT, KEY, PART)             \
  do {                                           \
    const std::string what = (WHAT);             \
    INFO(what);                                  \
    CHECK(what.find(KEY) != std::string::npos);  \
    CHECK(what.find(PART) != std::string::npos); \
  } while (false)

}  // namespace

TEST_CASE("the undamaged vocabularies are accepted") {
  CHECK(spm([](Vocabulary&) {}) == "accepted");
  CHECK(bpe([](Vocabulary&) {}) == "accepted");
}

TEST_CASE("an unknown or missing tokenizer is refused") {
  CHECK_NAMES(spm([](Vocabulary& v) { v.model = "bert"; }), "tokenizer.ggml.model", "'bert'");
  CHECK_NAMES(raw([](GgufWriter&) {}), "tokenizer.ggml.model", "missing");
  CHECK_NAMES(raw([](GgufWriter& w) { w.add_u32("tokenizer.ggml.model", 1); }),
              "tokenizer.ggml.model", "u32");
  CHECK_NAMES(bpe([](Vocabulary& v) { v.pre = "fantasy\n"; }), "tokenizer.ggml.pre",
              "'fantasy\\n'");
}

TEST_CASE("missing, mistyped and unequal arrays are refused") {
  const auto model = [](GgufWriter& w) { w.add_string("tokenizer.ggml.model", "llama"); };
  CHECK_NAMES(raw(model), "tokenizer.ggml.tokens", "missing");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                model(w);
                w.add_strings("tokenizer.ggml.tokens", {});
              }),
              "tokenizer.ggml.tokens", "empty");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                model(w);
                w.add_i32s("tokenizer.ggml.tokens", {1, 2});
              }),
              "tokenizer.ggml.tokens", "i32");
  const auto tokens = [&](GgufWriter& w) {
    model(w);
    w.add_strings("tokenizer.ggml.tokens", {"<unk>", "a"});
  };
  CHECK_NAMES(raw(tokens), "tokenizer.ggml.token_type", "missing");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                tokens(w);
                w.add_i32s("tokenizer.ggml.token_type", {2});
              }),
              "tokenizer.ggml.token_type", "has 1 elements");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                tokens(w);
                w.add_f32s("tokenizer.ggml.token_type", {2, 1});
              }),
              "tokenizer.ggml.token_type", "f32");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                tokens(w);
                w.add_i32s("tokenizer.ggml.token_type", {2, 1});
              }),
              "tokenizer.ggml.scores", "missing");
  CHECK_NAMES(spm([](Vocabulary& v) { v.scores.pop_back(); }), "tokenizer.ggml.scores",
              "has 258 elements");
  CHECK_NAMES(spm([](Vocabulary& v) { v.scores.push_back(0); }), "tokenizer.ggml.scores",
              "has 260 elements");
  CHECK_NAMES(raw([&](GgufWriter& w) {
                w.add_string("tokenizer.ggml.model", "gpt2");
                w.add_strings("tokenizer.ggml.tokens", test::bpe_vocabulary("").tokens);
              }),
              "tokenizer.ggml.merges", "missing");
}

TEST_CASE("wrong elements are refused with their place") {
  for (const std::int32_t kind : {0, 7, -1, std::numeric_limits<std::int32_t>::max()}) {
    CHECK_NAMES(spm([&](Vocabulary& v) { v.kinds[5] = kind; }), "tokenizer.ggml.token_type",
                "element 5 is " + std::to_string(kind));
  }
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    CHECK_NAMES(spm([&](Vocabulary& v) { v.scores[7] = score; }), "tokenizer.ggml.scores",
                "element 7");
  }
  CHECK_NAMES(spm([](Vocabulary& v) { v.tokens[9] = "<0xGG>"; }), "tokenizer.ggml.tokens",
              "'<0xGG>'");
  CHECK_NAMES(spm([](Vocabulary& v) { v.tokens[9] = "<0x-1>"; }), "tokenizer.ggml.tokens",
              "'<0x-1>'");
  CHECK_NAMES(spm([](Vocabulary& v) { v.tokens[9] = "<0x123>"; }), "tokenizer.ggml.tokens",
              "element 9");
  CHECK_NAMES(spm([](Vocabulary& v) { v.add("<s>"); }), "tokenizer.ggml.tokens",
              "element 259 is '<s>', as element 1 is");
}

TEST_CASE("special ids out of range are refused by name") {
  for (const char* name : {"bos", "eos", "eot", "eom", "unknown"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    for (const std::uint32_t id : {259u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFEu}) {
      CHECK_NAMES(with([&](GgufWriter& w) { w.add_u32(key, id); }), key, std::to_string(id));
    }
    CHECK_NAMES(with([&](GgufWriter& w) { w.add_string(key, "1"); }), key, "string");
  }
  CHECK(with([](GgufWriter& w) { w.add_u32("tokenizer.ggml.bos_token_id", 258); }) == "accepted");
  CHECK_NAMES(with([](GgufWriter& w) { w.add_u32("tokenizer.ggml.add_bos_token", 1); }),
              "tokenizer.ggml.add_bos_token", "u32");
  CHECK_NAMES(with([](GgufWriter& w) { w.add_u32("tokenizer.ggml.add_space_prefix", 1); }),
              "tokenizer.ggml.add_space_prefix", "u32");
  CHECK_NAMES(bpe([](Vocabulary& v) {
                v.more = [](GgufWriter& w) { w.add_bool("tokenizer.ggml.add_bos_token", true); };
              }),
              "tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id");
}

TEST_CASE("a vocabulary that cannot write every text is refused") {
  CHECK_NAMES(spm([](Vocabulary& v) {
                v.tokens[3 + 0x41] = "A";
                v.kinds[3 + 0x41] = static_cast<std::int32_t>(TokenKind::normal);
                v.kinds[0] = static_cast<std::int32_t>(TokenKind::normal);
              }),
              "tokenizer.ggml.tokens", "<0x41>");
  CHECK_NAMES(bpe([](Vocabulary& v) { v.tokens['A'] = "other"; }), "tokenizer.ggml.tokens", "0x41");
  for (const std::size_t byte : {0xC0, 0xC1, 0xF1, 0xF5, 0xFF}) {  // not in any text
    CHECK(bpe([&](Vocabulary& v) { v.tokens[byte] = "other"; }) == "accepted");
  }
  CHECK_NAMES(bpe([](Vocabulary& v) { v.tokens[0xF0] = "other"; }), "tokenizer.ggml.tokens",
              "0xF0");
}

TEST_CASE("merges that are not two tokens making a third are refused with their place") {
  const auto merge = [](const std::string& text) {
    return bpe([&](Vocabulary& v) { v.merges.push_back(text); });
  };
  for (const std::string text : {"", "a", " ", " a", "a ", "ab  c", "a b c", "\n"}) {
    CHECK_NAMES(merge(text), "tokenizer.ggml.merges", "element 1 is '");
  }
  CHECK_NAMES(merge("a c"), "tokenizer.ggml.merges", "'ac', which is no token");
  CHECK_NAMES(bpe([](Vocabulary& v) {
                v.add("zz?");
                v.merges.push_back("zz ?");
              }),
              "tokenizer.ggml.merges", "'zz', which is no token");
  CHECK_NAMES(bpe([](Vocabulary& v) {
                v.add("xy", TokenKind::control);
                v.merges.push_back("x y");
              }),
              "tokenizer.ggml.merges", "special");
  CHECK(merge("a b") == "accepted");  // a repetition: the first one counts
}
