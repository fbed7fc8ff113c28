// A Session and the tokenizer of its model as the batch job sees them.
#pragma once

#include "lockstep/lockstep.h"
#include "runtime/batch/step_model.h"
#include "runtime/chat/chat_template.h"

namespace lockstep::batch {

class SessionModel final : public StepModel {
 public:
  // `chat`: for chat requests, which are refused without one. Both must outlive the object.
  SessionModel(Session& session, const ChatTemplate* chat);

  std::string_view name() const override { return name_; }
  std::size_t context() const override { return session_.options().context; }
  std::size_t slots() const override { return session_.options().slots; }
  std::size_t max_batch() const override { return session_.options().max_batch; }
  std::size_t cache_block() const override { return session_.cache_room().block; }

  std::vector<TokenId> encode(const Request& request) const override;
  std::string piece(TokenId id) const override;
  std::string label(TokenId id) const override;
  TokenId bos() const override;
  bool ends_generation(TokenId id) const override;
  std::span<const TokenId> end_tokens() const override;

  std::size_t adopt(std::size_t slot, std::span<const TokenId> tokens) override {
    return session_.adopt(slot, tokens);
  }
  bool reserve(std::size_t slot, std::span<const TokenId> tokens) override {
    return session_.reserve(slot, tokens);
  }
  std::size_t room(std::size_t slot) const override { return session_.room(slot); }
  std::size_t cache_available() const override { return session_.cache_room().available; }
  bool evaluate(std::span<const BatchEntry> batch) override;
  std::span<const float> logits(std::size_t i) const override { return session_.logits(i); }
  void clear(std::size_t slot) override { session_.truncate(slot, 0); }
  std::uint64_t step_weight_bytes() const override { return session_.stats().weight_bytes; }

 private:
  Session& session_;
  const ChatTemplate* chat_;
  std::string name_;
};

}  // namespace lockstep::batch
