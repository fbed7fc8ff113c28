// A vocabulary of a few pieces, for tests of what happens after the logits: pieces of several
// bytes, halves of characters, control tokens, two tokens with one text. It evaluates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/batch/step_model.h"

namespace lockstep::test {

class WordModel final : public batch::StepModel {
 public:
  static constexpr TokenId kHel = 0, kLoStop = 1, kThere = 2, kFirstHalf = 3, kSecondHalf = 4,
                           kEnd = 5, kTool = 6, kOtherHel = 7, kBad = 8, kAccent = 9, kBos = 10;
  static constexpr std::size_t kSize = 11;

  std::string_view name() const override { return "words \"and\" \xc3\xa9"; }
  std::size_t context() const override { return 16; }
  std::size_t slots() const override { return 1; }
  std::size_t max_batch() const override { return 16; }

  std::vector<TokenId> encode(const batch::Request& request) const override {
    if (request.prompt == "alien") throw Error(ErrorCode::bad_input, "not of this world");
    std::vector<TokenId> ids;
    if (request.prompt.empty()) return ids;
    ids.push_back(kBos);
    ids.insert(ids.end(), request.prompt.size(), kThere);
    return ids;
  }
  std::string piece(TokenId id) const override { return kPieces.at(static_cast<std::size_t>(id)); }
  std::string label(TokenId id) const override {
    return id == kEnd ? "<|end|>" : id == kTool ? "<|tool|>" : id == kBos ? "<s>" : piece(id);
  }
  TokenId bos() const override { return kBos; }
  bool ends_generation(TokenId id) const override { return id == kEnd; }
  std::span<const TokenId> end_tokens() const override {
    static constexpr TokenId kEnds[] = {kEnd};
    return kEnds;
  }

  std::size_t cache_block() const override { return 16; }
  std::size_t adopt(std::size_t, std::span<const TokenId>) override { return 0; }
  bool reserve(std::size_t, std::span<const TokenId>) override { return true; }
  std::size_t room(std::size_t) const override { return 16; }
  std::size_t cache_available() const override { return 16; }
  bool evaluate(std::span<const BatchEntry>) override {
    throw std::logic_error("evaluates nothing");
  }
  std::span<const float> logits(std::size_t) const override { throw std::logic_error("no logits"); }
  void clear(std::size_t) override {}
  std::uint64_t step_weight_bytes() const override { return 0; }

  // Logits whose likeliest token is `token`; the others follow in the order of their ids.
  static std::vector<float> logits_for(TokenId token) {
    std::vector<float> logits(kSize);
    for (std::size_t i = 0; i < kSize; ++i) logits[i] = -0.125f * static_cast<float>(i);
    logits.at(static_cast<std::size_t>(token)) = 2.0f;
    return logits;
  }

 private:
  inline static const std::vector<std::string> kPieces = {
      "hel", "lo stop", " there", "\xc3", "\xa9", "", "", "hel", "\xff\n", "\xc3\xa9", ""};
};

}  // namespace lockstep::test
