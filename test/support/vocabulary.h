// Small vocabularies for tokenizer tests, as real GGUF files: every test goes through the same
// reader as a model does. A file is removed as soon as it is open.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/utf8.h"

namespace lockstep::test {

struct Vocabulary {
  std::string model = "llama";
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::function<void(GgufWriter&)> more;  // further keys

  TokenId add(std::string text, TokenKind kind = TokenKind::normal, float score = 0.0f) {
    tokens.push_back(std::move(text));
    kinds.push_back(static_cast<std::int32_t>(kind));
    scores.push_back(score);
    return static_cast<TokenId>(tokens.size() - 1);
  }
  // Adds the merge and the token that it makes.
  TokenId add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }
};

// <unk> <s> </s> and the 256 byte tokens: ids 0, 1, 2 and 3 + byte.
inline Vocabulary spm_vocabulary() {
  Vocabulary v;
  v.add("<unk>", TokenKind::unknown);
  v.add("<s>", TokenKind::control);
  v.add("</s>", TokenKind::control);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    v.add(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", TokenKind::byte);
  }
  return v;
}
inline constexpr TokenId kFirstByte = 3;

// The stand-in character of a byte in byte-level BPE, written from its definition: the printable
// bytes in order, then the others in order, from U+0100 on.
inline std::string stand_in(unsigned byte) {
  char32_t character = byte;
  const auto printable = [](unsigned b) {
    return (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD && b < 0x100);
  };
  if (!printable(byte)) {
    character = 0x100;
    for (unsigned b = 0; b < byte; ++b) character += printable(b) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, character);
  return text;
}

inline std::string stand_ins(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += stand_in(static_cast<unsigned char>(c));
  return text;
}

// The 256 bytes: id = byte.
inline Vocabulary bpe_vocabulary(std::string pre) {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (unsigned byte = 0; byte < 256; ++byte) v.add(stand_in(byte));
  return v;
}

inline GgufFile open_gguf(const GgufWriter& writer) {
  static int number = 0;
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("lockstep-vocabulary-" + std::to_string(::getpid()) + "-" +
                                      std::to_string(number++) + ".gguf");
  writer.write(path);
  GgufFile file = GgufFile::open(path);
  std::filesystem::remove(path);
  return file;
}

inline GgufFile open_vocabulary(const Vocabulary& v) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_string("tokenizer.ggml.model", v.model);
  if (!v.pre.empty()) writer.add_string("tokenizer.ggml.pre", v.pre);
  writer.add_strings("tokenizer.ggml.tokens", v.tokens);
  writer.add_i32s("tokenizer.ggml.token_type", v.kinds);
  if (v.model == "llama") writer.add_f32s("tokenizer.ggml.scores", v.scores);
  if (v.model == "gpt2") writer.add_strings("tokenizer.ggml.merges", v.merges);
  if (v.more) v.more(writer);
  return open_gguf(writer);
}

inline std::unique_ptr<Tokenizer> load(const Vocabulary& v) {
  return Tokenizer::load(open_vocabulary(v));
}

}  // namespace lockstep::test
