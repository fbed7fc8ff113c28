// A model whose answers can be worked out by hand: a token is a byte, 256 ends an answer, and the
// next token is a pure function of the tokens so far. It checks the rules of Session::evaluate as
// it goes, so a scheduler that breaks one fails loudly.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/batch/step_model.h"

namespace lockstep::test {

class FakeStepModel final : public batch::StepModel {
 public:
  static constexpr TokenId kEnd = 256;

  FakeStepModel(std::size_t context, std::size_t slots, std::size_t max_batch)
      : context_(context), max_batch_(max_batch), histories_(slots) {}

  std::string_view name() const override { return "fake"; }
  std::size_t context() const override { return context_; }
  std::size_t slots() const override { return histories_.size(); }
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
  std::string piece(TokenId id) const override { return std::string(1, static_cast<char>(id)); }
  bool ends_generation(TokenId id) const override { return id == kEnd; }

  bool evaluate(std::span<const BatchEntry> batch) override {
    if (batch.empty() || batch.size() > max_batch_) throw std::logic_error("batch size");
    if (cancel_at_step == ++steps) return false;
    largest_batch = std::max(largest_batch, batch.size());
    logits_.clear();
    for (const BatchEntry& entry : batch) {
      std::vector<TokenId>& history = histories_.at(static_cast<std::size_t>(entry.slot));
      if (static_cast<std::size_t>(entry.position) != history.size())
        throw std::logic_error("position");
      if (history.size() >= context_) throw std::logic_error("context");
      history.push_back(entry.token);
      if (entry.logits) logits_.push_back(predict(history));
    }
    return true;
  }
  std::span<const float> logits(std::size_t i) const override { return logits_.at(i); }
  void clear(std::size_t slot) override { histories_.at(slot).clear(); }
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

 private:
  static std::vector<float> predict(std::span<const TokenId> history) {
    std::vector<float> logits(257, 0.0f);
    logits.at(static_cast<std::size_t>(next(history))) = 3.0f;
    if (history[0] == 'N') logits[7] = std::numeric_limits<float>::quiet_NaN();
    return logits;
  }

  std::size_t context_;
  std::size_t max_batch_;
  std::vector<std::vector<TokenId>> histories_;
  std::vector<std::vector<float>> logits_;
};

}  // namespace lockstep::test
