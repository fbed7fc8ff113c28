// Text to token ids and back, from the vocabulary inside a GGUF file. Thread-safe after
// construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class GgufFile;
using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

// GGUF tokenizer.ggml.token_type.
enum class TokenKind : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct EncodeOptions {
  bool add_bos = true;        // prepend BOS if the model asks for one
  bool parse_special = true;  // "<|user|>" in the text becomes the control token, else plain text
};

class Tokenizer {
 public:
  // Chooses by tokenizer.ggml.model ("llama": SentencePiece BPE with scores; "gpt2": byte-level BPE
  // with merges and the pre-tokenizer named by tokenizer.ggml.pre). Throws Error(bad_model) naming
  // the key for anything missing, inconsistent or unknown.
  static std::unique_ptr<Tokenizer> load(const GgufFile& file);
  virtual ~Tokenizer() = default;

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The bytes a token stands for: may be part of a UTF-8 character. Control tokens give "" unless
  // `render_special`.
  virtual std::string piece(TokenId id, bool render_special = false) const = 0;
  std::string decode(std::span<const TokenId> ids, bool render_special = false) const;

  virtual std::string_view model() const noexcept = 0;
  std::size_t size() const noexcept { return kinds_.size(); }
  TokenKind kind(TokenId id) const { return kinds_.at(static_cast<std::size_t>(id)); }
  const std::string& text(TokenId id) const { return texts_.at(static_cast<std::size_t>(id)); }
  TokenId bos() const noexcept { return bos_; }
  TokenId eos() const noexcept { return eos_; }
  bool adds_bos() const noexcept { return add_bos_; }
  // EOS, EOT and the other end marks that chat models use (<|end|>, <|im_end|>, <|eot_id|>, ...).
  bool ends_generation(TokenId id) const noexcept;
  // All of them, ascending.
  std::span<const TokenId> end_tokens() const noexcept { return end_tokens_; }
  // The id of a token by its exact text, or kNoToken.
  TokenId find(std::string_view text) const noexcept;

 protected:
  Tokenizer() = default;
  // Encodes a stretch of text with no special tokens in it. `first`: no text precedes it, so it
  // stands at the start or right after a special token; that is where the public tools put the
  // space prefix.
  virtual void encode_text(std::string_view text, bool first, std::vector<TokenId>& out) const = 0;

  std::vector<std::string> texts_;
  std::vector<TokenKind> kinds_;
  TokenId bos_ = kNoToken;
  TokenId eos_ = kNoToken;
  bool add_bos_ = false;
  bool space_prefix_ =
      false;  // encode_text puts a space before `first` text; decode takes it away again

 private:
  friend struct TokenizerLoader;
  struct Index;  // token texts to ids, and the tokens that encode() may recognise in text
  std::shared_ptr<const Index> index_;
  std::vector<TokenId> end_tokens_;
};

}  // namespace lockstep
