// What both tokenizer families read from a model file in the same way, and the families themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/gguf.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

// What a family assumes where the file says nothing.
struct TokenizerDefaults {
  bool add_bos = false;
  bool needs_kinds = false;  // whether tokenizer.ggml.token_type must be there
  std::string_view bos;      // text of the token that is BOS if no id is given; "" for none
  std::string_view eos;
};

struct TokenizerLoader {
  // Reads tokens, kinds and special ids into `tokenizer`. Throws Error(bad_model) naming the key.
  static void fill(Tokenizer& tokenizer, const GgufFile& file, const TokenizerDefaults& defaults);
  // The id under `key`, or kNoToken if it is absent or the file's "none" (all ones).
  static TokenId special_id(const Tokenizer& tokenizer, const GgufFile& file, std::string_view key);

 private:
  static void read_tokens(Tokenizer& tokenizer, const GgufFile& file, bool needs_kinds);
  static void index(Tokenizer& tokenizer, const GgufFile& file);
  static void find_end_tokens(Tokenizer& tokenizer, const GgufFile& file);
};

// "metadata key 'tokenizer.ggml.tokens', element 7": where something is wrong, for messages.
std::string element(std::string_view key, std::size_t index);

std::unique_ptr<Tokenizer> load_spm_tokenizer(const GgufFile& file);
std::unique_ptr<Tokenizer> load_bpe_tokenizer(const GgufFile& file);

}  // namespace lockstep
