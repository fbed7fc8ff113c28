// Vocabulary arrays and special ids from a model file. Nothing here trusts the file: lengths must
// agree, kinds must be known, ids must name a token, or the file is refused with the key that is
// wrong.
#include "runtime/tokenizer/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/printable.h"
#include "runtime/tokenizer/index.h"

namespace lockstep {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kKinds = "tokenizer.ggml.token_type";
constexpr std::string_view kBosId = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kEosId = "tokenizer.ggml.eos_token_id";
constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";

constexpr std::string_view kEndIds[] = {kEosId, "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};

// Chat models end their turns with these, and older files do not say so.
constexpr std::string_view kEndTexts[] = {
    "</s>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|EOT|>",
    "<EOT>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

bool is_special(TokenKind kind) noexcept {
  return kind == TokenKind::control || kind == TokenKind::user_defined ||
         kind == TokenKind::unknown;
}

// Older files have no ids for BOS and EOS but always the same texts.
TokenId control_token(const Tokenizer& tokenizer, std::string_view text) {
  const TokenId id = text.empty() ? kNoToken : tokenizer.find(text);
  return id != kNoToken && tokenizer.kind(id) == TokenKind::control ? id : kNoToken;
}

}  // namespace

std::string element(std::string_view key, std::size_t index) {
  return fmt::format("metadata key '{}', element {}", key, index);
}

void TokenizerLoader::fill(Tokenizer& tokenizer, const GgufFile& file,
                           const TokenizerDefaults& defaults) {
  read_tokens(tokenizer, file, defaults.needs_kinds);
  index(tokenizer, file);

  tokenizer.bos_ = special_id(tokenizer, file, kBosId);
  tokenizer.eos_ = special_id(tokenizer, file, kEosId);
  if (file.find(kBosId) == nullptr) tokenizer.bos_ = control_token(tokenizer, defaults.bos);
  if (file.find(kEosId) == nullptr) tokenizer.eos_ = control_token(tokenizer, defaults.eos);

  const std::optional<bool> add_bos = file.boolean(kAddBos);
  if (add_bos == true && tokenizer.bos_ == kNoToken) {
    file.refuse(fmt::format("metadata key '{}' is true, but '{}' names no token", kAddBos, kBosId));
  }
  tokenizer.add_bos_ = add_bos.value_or(defaults.add_bos) && tokenizer.bos_ != kNoToken;
  find_end_tokens(tokenizer, file);
}

void TokenizerLoader::read_tokens(Tokenizer& tokenizer, const GgufFile& file, bool needs_kinds) {
  const std::vector<std::string>* tokens = file.strings(kTokens);
  if (tokens == nullptr) file.refuse(fmt::format("metadata key '{}' is missing", kTokens));
  if (tokens->empty()) file.refuse(fmt::format("metadata key '{}' is empty", kTokens));
  const std::size_t size = tokens->size();
  if (size > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    file.refuse(fmt::format("metadata key '{}' has {} elements, too many", kTokens, size));
  }
  const std::optional<std::vector<std::int32_t>> kinds = file.integers(kKinds);
  if (!kinds && needs_kinds) file.refuse(fmt::format("metadata key '{}' is missing", kKinds));
  if (kinds && kinds->size() != size) {
    file.refuse(fmt::format("metadata key '{}' has {} elements, but '{}' has {}", kKinds,
                            kinds->size(), kTokens, size));
  }
  tokenizer.texts_ = *tokens;
  tokenizer.kinds_.assign(size, TokenKind::normal);
  for (std::size_t i = 0; kinds && i < size; ++i) {
    const std::int32_t kind = (*kinds)[i];
    if (kind < 1 || kind > 6) {
      file.refuse(fmt::format("{} is {}, expected 1 to 6", element(kKinds, i), kind));
    }
    tokenizer.kinds_[i] = static_cast<TokenKind>(kind);
  }
}

void TokenizerLoader::index(Tokenizer& tokenizer, const GgufFile& file) {
  auto index = std::make_shared<Tokenizer::Index>();
  index->by_text.reserve(tokenizer.size());
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const std::string& text = tokenizer.texts_[i];
    if (text.empty()) continue;  // padding; nothing can ask for it
    const auto id = static_cast<TokenId>(i);
    const auto [known, fresh] = index->by_text.emplace(text, id);
    if (!fresh) {
      file.refuse(fmt::format("{} is '{}', as element {} is", element(kTokens, i), printable(text),
                              known->second));
    }
    const TokenKind kind = tokenizer.kinds_[i];
    if (is_special(kind)) index->add_special(text, id, kind == TokenKind::user_defined);
  }
  tokenizer.index_ = std::move(index);
}

TokenId TokenizerLoader::special_id(const Tokenizer& tokenizer, const GgufFile& file,
                                    std::string_view key) {
  const std::optional<std::uint32_t> id = file.u32(key);
  if (!id || *id == std::numeric_limits<std::uint32_t>::max()) return kNoToken;
  if (*id >= tokenizer.size()) {
    file.refuse(fmt::format("metadata key '{}' is {}, but there are only {} tokens", key, *id,
                            tokenizer.size()));
  }
  return static_cast<TokenId>(*id);
}

void TokenizerLoader::find_end_tokens(Tokenizer& tokenizer, const GgufFile& file) {
  std::vector<TokenId>& ends = tokenizer.end_tokens_;
  ends.push_back(tokenizer.eos_);
  for (const std::string_view key : kEndIds) ends.push_back(special_id(tokenizer, file, key));
  for (const std::string_view text : kEndTexts) {
    const TokenId id = tokenizer.find(text);
    if (id != kNoToken && is_special(tokenizer.kind(id))) ends.push_back(id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::erase(ends, kNoToken);
}

}  // namespace lockstep
