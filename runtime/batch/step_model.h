// What the scheduler and the job need of a model. In production it is a Session with its tokenizer
// (session_model.h); tests put a small deterministic fake behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/batch/request.h"

namespace lockstep::batch {

class StepModel {
 public:
  StepModel() = default;
  StepModel(const StepModel&) = delete;
  StepModel& operator=(const StepModel&) = delete;
  virtual ~StepModel() = default;

  virtual std::string_view name() const = 0;
  virtual std::size_t context() const = 0;  // positions per slot
  virtual std::size_t slots() const = 0;
  virtual std::size_t max_batch() const = 0;
  virtual std::size_t cache_block() const = 0;  // positions that a slot gets at once

  // The token ids that a request is answered from. Empty if there is nothing to start from. Throws
  // Error for messages that the chat template refuses.
  virtual std::vector<TokenId> encode(const Request& request) const = 0;
  virtual std::string piece(TokenId id) const = 0;
  // What a token is called in the vocabulary: "<|end|>" for one whose piece is empty.
  virtual std::string label(TokenId id) const = 0;
  virtual TokenId bos() const = 0;  // kNoToken if the model has none
  virtual bool ends_generation(TokenId id) const = 0;
  // All tokens for which ends_generation() is true.
  virtual std::span<const TokenId> end_tokens() const = 0;

  // As Session::adopt, reserve and room.
  virtual std::size_t adopt(std::size_t slot, std::span<const TokenId> tokens) = 0;
  virtual bool reserve(std::size_t slot, std::span<const TokenId> tokens) = 0;
  virtual std::size_t room(std::size_t slot) const = 0;
  // Positions of the cache that no slot uses, for all of them together.
  virtual std::size_t cache_available() const = 0;
  // As Session::evaluate and logits. False if the step was cancelled: what was booked for it is
  // gone then.
  virtual bool evaluate(std::span<const BatchEntry> batch) = 0;
  virtual std::span<const float> logits(std::size_t i) const = 0;
  virtual void clear(std::size_t slot) = 0;
  // Weight bytes read by the last evaluate().
  virtual std::uint64_t step_weight_bytes() const = 0;
};

}  // namespace lockstep::batch
