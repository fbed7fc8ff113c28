// Continuous batching: several sequences advance together, one evaluate() per step, and a finished
// one makes room at once.
//
// Every step takes one token of each sequence that is generating, and fills the rest of the batch
// with prompt tokens of those that are not yet, in the order of their admission. What a sequence
// produces does not depend on its mates: the library gives the same logits whatever shares the
// batch, and each sequence has a sampler of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/batch/answer.h"
#include "runtime/batch/step_model.h"

namespace lockstep::batch {

// What to answer, and how; max_tokens is at least 1, and prompt and output together must fit into
// the context.
struct Sequence : AnswerRules {
  std::vector<TokenId> prompt;  // 1 .. context tokens
};

// What one step did.
struct StepCounts {
  std::size_t prompt_tokens = 0;
  std::size_t output_tokens = 0;
};

class Scheduler {
 public:
  explicit Scheduler(StepModel& model);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  bool has_free_slot() const noexcept { return active_ < slots_.size(); }
  bool idle() const noexcept { return active_ == 0; }
  std::size_t active() const noexcept { return active_; }

  // Takes a sequence into a free slot and returns the slot.
  std::size_t admit(Sequence sequence);
  // One evaluate(); appends the sequences that it finished. False if the step was cancelled.
  bool step(std::vector<Finished>& finished, StepCounts& counts);

 private:
  struct Slot;

  void build_batch(StepCounts& counts);
  void take_token(std::size_t slot, std::span<const float> logits, std::vector<Finished>& finished,
                  StepCounts& counts);
  void finish(std::size_t slot, FinishReason reason, std::vector<Finished>& finished);

  StepModel& model_;
  std::vector<std::unique_ptr<Slot>> slots_;  // null: free
  std::vector<std::size_t> order_;            // occupied slots in the order of their admission
  std::size_t active_ = 0;
  std::vector<BatchEntry> batch_;
  std::vector<std::size_t> outputs_;  // slots whose logits this step asked for, in batch order
};

}  // namespace lockstep::batch
