// SentencePiece BPE ("llama" in GGUF): spaces become U+2581, the text is taken as one string of
// characters, and neighbours are merged wherever the joined text is a token, best score first. What
// is no token in the end is spelled with byte tokens, so every text, and every broken text, can be
// written.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "runtime/printable.h"
#include "runtime/tokenizer/loader.h"
#include "runtime/tokenizer/merge.h"
#include "runtime/utf8.h"

namespace lockstep {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kUnknownId = "tokenizer.ggml.unknown_token_id";
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class SpmTokenizer final : public Tokenizer {
 public:
  explicit SpmTokenizer(const GgufFile& file);

  std::string piece(TokenId id, bool render_special) const override;
  std::string_view model() const noexcept override { return "llama"; }

 protected:
  void encode_text(std::string_view text, bool first, std::vector<TokenId>& out) const override;

 private:
  // Bytes of the left part that a merged token was made from; kept for tokens that only exist as
  // steps to longer ones ("unused") and have to come apart again if no longer one was reached.
  using Splits = std::unordered_map<TokenId, std::uint32_t>;

  void read_scores(const GgufFile& file);
  void find_byte_tokens(const GgufFile& file);
  TokenId mergeable(std::string_view text) const noexcept;
  bool crosses_words() const noexcept;
  void encode_part(std::string_view text, Merger& merger, std::vector<TokenId>& out) const;
  void emit(std::string_view text, TokenId id, const Splits& splits,
            std::vector<TokenId>& out) const;
  void emit_bytes(std::string_view text, std::vector<TokenId>& out) const;

  std::vector<double> scores_;
  std::array<TokenId, 256> bytes_{};
  TokenId unknown_ = kNoToken;
  bool words_apart_ = false;  // words can be merged one by one
};

// The value of a byte token's text, "<0xAB>"; -1 for anything else.
int byte_value(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int value = -1;
  const char* const end = text.data() + 5;
  const auto [stop, error] = std::from_chars(text.data() + 3, end, value, 16);
  return error == std::errc{} && stop == end ? value : -1;
}

SpmTokenizer::SpmTokenizer(const GgufFile& file) {
  TokenizerLoader::fill(*this, file,
                        {.add_bos = true, .needs_kinds = true, .bos = "<s>", .eos = "</s>"});
  space_prefix_ = file.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  read_scores(file);
  find_byte_tokens(file);
  words_apart_ = !crosses_words();
}

void SpmTokenizer::read_scores(const GgufFile& file) {
  const std::vector<double>* scores = file.floats(kScores);
  if (scores == nullptr) file.refuse(fmt::format("metadata key '{}' is missing", kScores));
  if (scores->size() != size()) {
    file.refuse(fmt::format("metadata key '{}' has {} elements, but '{}' has {}", kScores,
                            scores->size(), kTokens, size()));
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (!std::isfinite((*scores)[i])) {
      file.refuse(fmt::format("{} is not a finite number", element(kScores, i)));
    }
  }
  scores_ = *scores;
}

void SpmTokenizer::find_byte_tokens(const GgufFile& file) {
  unknown_ = TokenizerLoader::special_id(*this, file, kUnknownId);
  bytes_.fill(kNoToken);
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (kinds_[i] == TokenKind::unknown && file.find(kUnknownId) == nullptr &&
        unknown_ == kNoToken) {
      unknown_ = id;
    }
    if (kinds_[i] != TokenKind::byte) continue;
    const int value = byte_value(texts_[i]);
    if (value < 0) {
      file.refuse(fmt::format("{} is a byte token, but its text is '{}' instead of '<0xAB>'",
                              element(kTokens, i), printable(texts_[i])));
    }
    bytes_[static_cast<std::size_t>(value)] = id;
  }
  for (std::size_t value = 0; value < bytes_.size(); ++value) {
    if (bytes_[value] == kNoToken && unknown_ == kNoToken) {
      file.refuse(
          fmt::format("metadata key '{}' has no byte token '<0x{:02X}>', and '{}' names none "
                      "to stand in for it",
                      kTokens, value, kUnknownId));
    }
  }
}

// Control, byte and unknown tokens are never made by merging, or plain text could forge them.
TokenId SpmTokenizer::mergeable(std::string_view text) const noexcept {
  const TokenId id = find(text);
  if (id == kNoToken) return kNoToken;
  const TokenKind of = kinds_[static_cast<std::size_t>(id)];
  const bool usable =
      of == TokenKind::normal || of == TokenKind::user_defined || of == TokenKind::unused;
  return usable ? id : kNoToken;
}

// Whether some token goes on behind a space that is not at its start. Without such tokens, and
// published vocabularies have none, no merge crosses from one word to the next.
bool SpmTokenizer::crosses_words() const noexcept {
  for (const std::string& text : texts_) {
    std::size_t word = 0;
    while (std::string_view(text).substr(word).starts_with(kSpace)) word += kSpace.size();
    if (text.find(kSpace, word) != std::string::npos && mergeable(text) != kNoToken) return true;
  }
  return false;
}

void SpmTokenizer::encode_text(std::string_view raw, bool first, std::vector<TokenId>& out) const {
  std::string text;
  text.reserve(raw.size() + raw.size() / 2 + kSpace.size());
  if (first && space_prefix_) text += kSpace;
  for (const char c : raw) {
    if (c == ' ') {
      text += kSpace;
    } else {
      text += c;
    }
  }
  Merger merger;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t end = rest.size();
    if (words_apart_) {  // the same merges in many small heaps instead of a large one
      std::size_t word = 0;
      while (rest.substr(word).starts_with(kSpace)) word += kSpace.size();
      end = std::min(end, rest.find(kSpace, word));
    }
    encode_part(rest.substr(0, end), merger, out);
    rest.remove_prefix(end);
  }
}

void SpmTokenizer::encode_part(std::string_view text, Merger& merger,
                               std::vector<TokenId>& out) const {
  merger.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = next_utf8(text.substr(at));
    const std::size_t length = step.status == Utf8Status::valid ? step.length : 1;
    merger.append(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), kNoToken);
    at += length;
  }
  Splits splits;
  merger.run([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const TokenId id = mergeable(text.substr(left.begin, left.size + right.size));
    if (id == kNoToken) return std::nullopt;
    if (kinds_[static_cast<std::size_t>(id)] == TokenKind::unused) splits[id] = left.size;
    return Merge{-scores_[static_cast<std::size_t>(id)], id};
  });
  for (const Symbol& symbol : merger.symbols()) {
    if (symbol.size == 0) continue;  // merged into another
    const std::string_view part = text.substr(symbol.begin, symbol.size);
    emit(part, symbol.id == kNoToken ? mergeable(part) : symbol.id, splits, out);
  }
}

void SpmTokenizer::emit(std::string_view text, TokenId id, const Splits& splits,
                        std::vector<TokenId>& out) const {
  const auto split = [&](TokenId of) {
    const bool unused = of != kNoToken && kinds_[static_cast<std::size_t>(of)] == TokenKind::unused;
    const auto found = unused ? splits.find(of) : splits.end();
    return found == splits.end() ? 0u : found->second;
  };
  if (id == kNoToken) return emit_bytes(text, out);
  if (split(id) == 0) return out.push_back(id);
  std::vector<std::string_view> parts{
      text};  // a stack, not recursion: token lengths are the file's
  while (!parts.empty()) {
    const std::string_view part = parts.back();
    parts.pop_back();
    const TokenId part_id = mergeable(part);
    const std::uint32_t left = split(part_id);
    if (part_id == kNoToken) {
      emit_bytes(part, out);
    } else if (left == 0) {
      out.push_back(part_id);
    } else {
      parts.push_back(part.substr(left));
      parts.push_back(part.substr(0, left));
    }
  }
}

void SpmTokenizer::emit_bytes(std::string_view text, std::vector<TokenId>& out) const {
  if (text == kSpace) text = " ";  // U+2581 is no part of the text
  for (const char c : text) {
    const TokenId id = bytes_[static_cast<unsigned char>(c)];
    out.push_back(id != kNoToken ? id : unknown_);
    if (id == kNoToken) return;  // one unknown token for the character, not one per byte
  }
}

std::string SpmTokenizer::piece(TokenId id, bool render_special) const {
  const std::string& text = this->text(id);
  switch (kind(id)) {
    case TokenKind::control:
      return render_special ? text : std::string();
    case TokenKind::unknown:
      return render_special ? text : std::string(kReplacement);
    case TokenKind::user_defined:
      return text;
    case TokenKind::byte:
      return std::string(1, static_cast<char>(byte_value(text)));
    case TokenKind::normal:
    case TokenKind::unused:
      break;
  }
  std::string bytes;
  std::size_t at = 0;
  for (std::size_t mark = text.find(kSpace); mark != std::string::npos;
       mark = text.find(kSpace, at)) {
    bytes.append(text, at, mark - at) += ' ';
    at = mark + kSpace.size();
  }
  return bytes.append(text, at, std::string::npos);
}

}  // namespace

std::unique_ptr<Tokenizer> load_spm_tokenizer(const GgufFile& file) {
  return std::make_unique<SpmTokenizer>(file);
}

}  // namespace lockstep
