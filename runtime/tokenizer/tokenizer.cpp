// The part of a tokenizer that does not depend on its family: cutting special tokens out of a text
// before the family sees it, and joining pieces. Keeping special tokens out of the families' hands
// is also what makes plain text unable to become a control token.
#include "runtime/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "runtime/printable.h"
#include "runtime/tokenizer/index.h"
#include "runtime/tokenizer/loader.h"

namespace lockstep {
namespace {

// Symbols are counted in 32 bits; SentencePiece's mark makes three bytes of a space.
constexpr std::size_t kLongestText = std::size_t{1} << 29;

struct Family {
  std::string_view model;
  std::unique_ptr<Tokenizer> (*load)(const GgufFile& file);
};

constexpr Family kFamilies[] = {
    {"llama", load_spm_tokenizer},
    {"gpt2", load_bpe_tokenizer},
};

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string& model = file.require_string(kKey);
  for (const Family& family : kFamilies) {
    if (family.model == model) return family.load(file);
  }
  file.refuse(fmt::format("metadata key '{}' is '{}'; known tokenizers are 'llama' and 'gpt2'",
                          kKey, printable(model)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kLongestText) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("a text of {} bytes is too long: at most {} bytes", text.size(), kLongestText));
  }
  std::vector<TokenId> ids;
  if (options.add_bos && add_bos_) ids.push_back(bos_);
  bool first = true;
  std::size_t begin = 0;
  std::size_t at = 0;
  const auto flush = [&] {
    if (at == begin) return;
    encode_text(text.substr(begin, at - begin), first, ids);
    first = false;
  };
  while (at < text.size()) {
    Index::Match special;
    if (index_->may_start(text[at])) {
      special = index_->match(text.substr(at), options.parse_special);
    }
    if (special.id == kNoToken) {
      ++at;
      continue;
    }
    flush();
    ids.push_back(special.id);
    first = true;
    at += special.size;
    begin = at;
  }
  flush();
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string text;
  bool first = true;  // as in encode(): where a prefix was added, it is taken away
  for (const TokenId id : ids) {
    const std::string bytes = piece(id, render_special);
    const TokenKind of = kind(id);
    if (of == TokenKind::control || of == TokenKind::user_defined || of == TokenKind::unknown) {
      text += bytes;
      first = true;
    } else if (!bytes.empty()) {
      text.append(bytes, first && space_prefix_ && bytes.front() == ' ' ? 1 : 0);
      first = false;
    }
  }
  return text;
}

bool Tokenizer::ends_generation(TokenId id) const noexcept {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), id);
}

TokenId Tokenizer::find(std::string_view text) const noexcept {
  const auto found = index_->by_text.find(text);
  return found == index_->by_text.end() ? kNoToken : found->second;
}

}  // namespace lockstep
