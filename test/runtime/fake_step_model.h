// A model whose answers can be worked out by hand: a token is a byte, 256 ends an answer, and the
// next token is a pure function of the tokens so far, which it keeps in blocks as a cache does: a
// block that is shared or given away wrongly changes the answers. It checks the rules of
// Session::evaluate as it goes, so a scheduler that breaks one fails loudly.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/batch/step_model.h"
#include "runtime/kv_blocks.h"

namespace lockstep::test {

class FakeStepModel final : public batch::StepModel {
 public:
  static constexpr TokenId kEnd = 256;

  static constexpr std::size_t kBlock = 8;

  // `blocks`: in the cache; 0: enough for all slots.
  FakeStepModel(std::size_t context, std::size_t slots, std::size_t max_batch,
                std::size_t blocks = 0)
      : context_(context),
        max_batch_(max_batch),
        blocks_({slots, context, blocks != 0 ? blocks : slots * (context / kBlock + 1) + 1, kBlock,
                 true}),
        cells_(blocks_.options().blocks * kBlock, -1) {}

  std::string_view name() const override { return "fake"; }
  std::size_t context() const override { return context_; }
  std::size_t slots() const override { return blocks_.options().slots; }
  std::size_t cache_block() const override { return kBlock; }
  std::size_t max_batch() const override { return max_batch_; }

  std::vector<TokenId> encode(const batch::Request& request) const override {
    std::string text = request.prompt;
    if (request.is_chat) {
      for (const auto& message : nlohmann::json::parse(request.chat.messages)) {
        if (message.at("role") == "tool") throw Error(ErrorCode::bad_input, "no tools here");
        text += message.at("content").get<std::string>();
      }
    }
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string piece(TokenId id) const override {
    return id == kEnd ? "" : std::string(1, static_cast<char>(id));
  }
  std::string label(TokenId) const override { return "<end>"; }
  TokenId bos() const override { return bos_token; }
  bool ends_generation(TokenId id) const override { return id == kEnd; }
  std::span<const TokenId> end_tokens() const override {
    static constexpr TokenId kEnds[] = {kEnd};
    return kEnds;
  }

  std::size_t adopt(std::size_t slot, std::span<const TokenId> tokens) override {
    return blocks_.adopt(slot, tokens);
  }
  bool reserve(std::size_t slot, std::span<const TokenId> tokens) override {
    return blocks_.reserve(slot, tokens);
  }
  std::size_t room(std::size_t slot) const override { return blocks_.room(slot); }
  std::size_t cache_available() const override { return blocks_.available() * kBlock; }
  bool evaluate(std::span<const BatchEntry> batch) override {
    if (batch.empty() || batch.size() > max_batch_) throw std::logic_error("batch size");
    if (cancel_at_step == ++steps) {
      blocks_.rollback();
      return false;
    }
    largest_batch = std::max(largest_batch, batch.size());
    for (const KvBlocks::Copy& copy : blocks_.take_copies()) {
      for (std::size_t i = 0; i < copy.positions; ++i) {
        cells_[copy.to * kBlock + i] = cells_[copy.from * kBlock + i];
      }
    }
    std::vector<std::size_t> next(slots());
    for (std::size_t slot = 0; slot < slots(); ++slot) next[slot] = blocks_.evaluated(slot);
    for (const BatchEntry& entry : batch) {
      const auto slot = static_cast<std::size_t>(entry.slot);
      const auto position = static_cast<std::size_t>(entry.position);
      if (position != next.at(slot)++) throw std::logic_error("position");
      if (position >= blocks_.length(slot)) throw std::logic_error("not booked");
      cell(slot, position) = entry.token;
    }
    for (const std::size_t slot : blocks_.touched()) {
      if (next[slot] != blocks_.length(slot)) throw std::logic_error("booked, not in the batch");
    }
    logits_.clear();
    for (const BatchEntry& entry : batch) {
      if (!entry.logits) continue;
      std::vector<TokenId> history;
      for (std::size_t i = 0; i <= static_cast<std::size_t>(entry.position); ++i) {
        history.push_back(cell(static_cast<std::size_t>(entry.slot), i));
      }
      logits_.push_back(predict(history));
    }
    blocks_.commit();
    return true;
  }
  std::span<const float> logits(std::size_t i) const override { return logits_.at(i); }
  void clear(std::size_t slot) override { blocks_.truncate(slot, 0); }
  std::uint64_t step_weight_bytes() const override { return 10; }

  // The token after `history`. A history that begins with 'E' echoes: "Ehello" is answered by
  // "hello" and the end. One that begins with 'N' gives NaN, 'U' the first half of a two-byte
  // character for ever. Others give letters chosen by a hash of the whole history, and now and then
  // the end.
  static TokenId next(std::span<const TokenId> history) {
    if (history[0] == 'U') return 0xc3;
    if (history[0] == 'E') {
      std::size_t prompt = 1;  // the echo repeats, so the prompt ends where '|' is
      while (prompt < history.size() && history[prompt] != '|') ++prompt;
      const std::size_t done = history.size() - prompt - 1;
      return done + 1 < prompt ? history[1 + done] : kEnd;
    }
    std::uint64_t hash = 1469598103934665603u;
    for (const TokenId id : history)
      hash = (hash ^ static_cast<std::uint64_t>(id)) * 1099511628211u;
    hash ^= hash >> 29;
    return hash % 19 == 0 ? kEnd : static_cast<TokenId>('a' + hash % 26);
  }

  std::size_t steps = 0;
  std::size_t cancel_at_step = 0;
  std::size_t largest_batch = 0;
  TokenId bos_token = kNoToken;

 private:
  static std::vector<float> predict(std::span<const TokenId> history) {
    std::vector<float> logits(257, 0.0f);
    logits.at(static_cast<std::size_t>(next(history))) = 3.0f;
    if (history[0] == 'N') logits[7] = std::numeric_limits<float>::quiet_NaN();
    return logits;
  }

  TokenId& cell(std::size_t slot, std::size_t position) {
    const std::size_t at = slot * blocks_.blocks_per_slot() + position / kBlock;
    return cells_.at(static_cast<std::size_t>(blocks_.table()[at]) * kBlock + position % kBlock);
  }

  std::size_t context_;
  std::size_t max_batch_;
  KvBlocks blocks_;
  std::vector<TokenId> cells_;  // the token at each position of each block
  std::vector<std::vector<float>> logits_;
};

}  // namespace lockstep::test
