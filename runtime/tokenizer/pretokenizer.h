// Cutting a text into the words that byte-level BPE merges inside. A family is a list of regular
// expressions, applied one after the other to what the ones before left over; matches and the gaps
// between them are words. Words are cut exactly as the public tools cut them: a different cut means
// different ids.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct PreTokenizerFamily {
  std::string_view name;  // of tokenizer.ggml.pre
  std::span<const std::string_view> expressions;
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool add_bos = false;        // where the file does not say
};

// Null for an unknown name.
const PreTokenizerFamily* find_pretokenizer(std::string_view name) noexcept;
// "default, gpt-2, ...", for messages.
std::string known_pretokenizers();

class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerFamily& family);
  PreTokenizer(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Appends the words of `text`, in order and without loss. Broken UTF-8 stands in words of its
  // own.
  void split(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  struct Expression;
  std::vector<Expression> expressions_;
};

}  // namespace lockstep
