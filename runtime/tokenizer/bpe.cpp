// Byte-level BPE ("gpt2" in GGUF): every byte has a printable stand-in character, token texts and
// merges are written in those, and words are merged byte by byte in the order of the merge list.
// Merges are kept as pairs of ids, so merging compares numbers and never builds a string.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runtime/printable.h"
#include "runtime/tokenizer/loader.h"
#include "runtime/tokenizer/merge.h"
#include "runtime/tokenizer/pretokenizer.h"
#include "runtime/utf8.h"

namespace lockstep {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kUnknownId = "tokenizer.ggml.unknown_token_id";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes for U+0100 and on.
constexpr bool stands_for_itself(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<char16_t, 256> stand_in{};
  std::array<std::int16_t, 0x144> byte{};  // of a stand-in character; -1 for none
  constexpr Alphabet() {
    for (std::int16_t& value : byte) value = -1;
    char16_t next = 0x100;
    for (unsigned value = 0; value < 256; ++value) {
      const char16_t character = stands_for_itself(value) ? static_cast<char16_t>(value) : next++;
      stand_in[value] = character;
      byte[character] = static_cast<std::int16_t>(value);
    }
  }
};
constexpr Alphabet kAlphabet;

// The bytes that a token text stands for. Characters outside of the alphabet are kept as they are.
std::string to_bytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    std::size_t character = kAlphabet.byte.size();
    if (step.status == Utf8Status::valid && step.length == 1) {
      character = static_cast<unsigned char>(text[0]);
    } else if (step.status == Utf8Status::valid && step.length == 2) {
      character = (static_cast<std::size_t>(text[0] & 0x1F) << 6) | (text[1] & 0x3F);
    }
    const bool known = character < kAlphabet.byte.size() && kAlphabet.byte[character] >= 0;
    if (known) {
      bytes += static_cast<char>(kAlphabet.byte[character]);
    } else {
      bytes += text.substr(0, step.length);
    }
    text.remove_prefix(step.length);
  }
  return bytes;
}

constexpr std::uint64_t pair_of(TokenId left, TokenId right) noexcept {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

const PreTokenizerFamily& family_of(const GgufFile& file) {
  const std::string name = file.string(kPre).value_or("default");
  const PreTokenizerFamily* family = find_pretokenizer(name);
  if (family == nullptr) {
    file.refuse(fmt::format("metadata key '{}' is '{}', an unknown pre-tokenizer; known are {}",
                            kPre, printable(name), known_pretokenizers()));
  }
  return *family;
}

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(const GgufFile& file);

  std::string piece(TokenId id, bool render_special) const override;
  std::string_view model() const noexcept override { return "gpt2"; }

 protected:
  void encode_text(std::string_view text, bool first, std::vector<TokenId>& out) const override;

 private:
  void find_byte_tokens(const GgufFile& file);
  void read_merges(const GgufFile& file);
  TokenId merge_side(const GgufFile& file, std::size_t index, std::string_view text) const;
  void emit_byte(char byte, std::vector<TokenId>& out) const;

  const PreTokenizerFamily& family_;
  PreTokenizer pre_;
  std::vector<std::string> pieces_;  // the bytes of each token
  std::array<TokenId, 256> bytes_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::unordered_map<std::string_view, TokenId> words_;  // only with ignore_merges
  TokenId unknown_ = kNoToken;
};

BpeTokenizer::BpeTokenizer(const GgufFile& file) : family_(family_of(file)), pre_(family_) {
  TokenizerLoader::fill(*this, file, {.add_bos = family_.add_bos, .bos = "", .eos = ""});
  pieces_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    // Special tokens are written as they are, not in the alphabet.
    pieces_.push_back(kinds_[i] == TokenKind::normal ? to_bytes(texts_[i]) : texts_[i]);
  }
  find_byte_tokens(file);
  read_merges(file);
  if (!family_.ignore_merges) return;
  words_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    if (kinds_[i] == TokenKind::normal) words_.emplace(pieces_[i], static_cast<TokenId>(i));
  }
}

void BpeTokenizer::find_byte_tokens(const GgufFile& file) {
  unknown_ = TokenizerLoader::special_id(*this, file, kUnknownId);
  for (unsigned value = 0; value < 256; ++value) {
    std::string text;
    append_utf8(text, kAlphabet.stand_in[value]);
    const TokenId id = find(text);
    // Some vocabularies lack the bytes that UTF-8 never has and reuse their stand-ins as added
    // tokens.
    const bool usable = id != kNoToken && kinds_[static_cast<std::size_t>(id)] == TokenKind::normal;
    bytes_[value] = usable ? id : kNoToken;
    // UTF-8 never has 0xC0, 0xC1 and 0xF5 on; 0xF1 to 0xF4 start planes without assigned
    // characters.
    const bool in_text = value < 0xC0 || (value > 0xC1 && value < 0xF1);
    if (!usable && in_text && unknown_ == kNoToken) {
      file.refuse(
          fmt::format("metadata key '{}' has no token '{}' for the byte 0x{:02X}, and '{}' "
                      "names none to stand in for it",
                      kTokens, text, value, kUnknownId));
    }
  }
}

TokenId BpeTokenizer::merge_side(const GgufFile& file, std::size_t index,
                                 std::string_view text) const {
  const TokenId id = find(text);
  if (id == kNoToken) {
    file.refuse(
        fmt::format("{} needs '{}', which is no token", element(kMerges, index), printable(text)));
  }
  return id;
}

void BpeTokenizer::read_merges(const GgufFile& file) {
  const std::vector<std::string>* merges = file.strings(kMerges);
  if (merges == nullptr) file.refuse(fmt::format("metadata key '{}' is missing", kMerges));
  merges_.reserve(merges->size());
  std::string joined;
  for (std::size_t i = 0; i < merges->size(); ++i) {
    const std::string_view text = (*merges)[i];
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string_view::npos) {
      file.refuse(fmt::format("{} is '{}', expected two tokens with a space between them",
                              element(kMerges, i), printable(text)));
    }
    const std::string_view left = text.substr(0, space);
    const std::string_view right = text.substr(space + 1);
    joined.assign(left) += right;
    const TokenId id = merge_side(file, i, joined);
    if (kinds_[static_cast<std::size_t>(id)] != TokenKind::normal) {
      file.refuse(fmt::format("{} makes '{}', which is a special token", element(kMerges, i),
                              printable(joined)));
    }
    merges_.emplace(pair_of(merge_side(file, i, left), merge_side(file, i, right)),
                    Merge{static_cast<double>(i), id});
  }
}

void BpeTokenizer::encode_text(std::string_view text, bool /*first*/,
                               std::vector<TokenId>& out) const {
  std::vector<std::string_view> words;
  pre_.split(text, words);
  const auto find_merge = [this](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    if (left.id == kNoToken || right.id == kNoToken) return std::nullopt;
    const auto found = merges_.find(pair_of(left.id, right.id));
    return found == merges_.end() ? std::nullopt : std::optional<Merge>(found->second);
  };
  Merger merger;
  for (const std::string_view word : words) {
    if (family_.ignore_merges) {
      const auto whole = words_.find(word);
      if (whole != words_.end()) {
        out.push_back(whole->second);
        continue;
      }
    }
    merger.clear();
    for (std::uint32_t i = 0; i < word.size(); ++i) {
      merger.append(i, 1, bytes_[static_cast<unsigned char>(word[i])]);
    }
    merger.run(find_merge);
    for (const Symbol& symbol : merger.symbols()) {
      if (symbol.size == 0) continue;  // merged into another
      if (symbol.id != kNoToken) {
        out.push_back(symbol.id);
      } else {
        emit_byte(word[symbol.begin], out);
      }
    }
  }
}

// A byte without a token becomes U+FFFD. The unknown token comes second: many files name their end
// mark as that, and no text should be able to write it.
void BpeTokenizer::emit_byte(char byte, std::vector<TokenId>& out) const {
  const TokenId id = bytes_[static_cast<unsigned char>(byte)];
  if (id != kNoToken) return out.push_back(id);
  const std::size_t before = out.size();
  for (const char part : kReplacement) {
    const TokenId part_id = bytes_[static_cast<unsigned char>(part)];
    if (part_id != kNoToken) out.push_back(part_id);
  }
  if (out.size() == before + kReplacement.size()) return;
  out.resize(before);
  out.push_back(unknown_);  // there is one, or loading would have failed
}

std::string BpeTokenizer::piece(TokenId id, bool render_special) const {
  const std::string& bytes = pieces_.at(static_cast<std::size_t>(id));
  switch (kind(id)) {
    case TokenKind::control:
      return render_special ? bytes : std::string();
    case TokenKind::unknown:
      return render_special ? bytes : std::string(kReplacement);
    default:
      return bytes;
  }
}

}  // namespace

std::unique_ptr<Tokenizer> load_bpe_tokenizer(const GgufFile& file) {
  return std::make_unique<BpeTokenizer>(file);
}

}  // namespace lockstep
