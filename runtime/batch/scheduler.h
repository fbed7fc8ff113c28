// Continuous batching: several sequences advance together, one evaluate() per step, and a finished
// one makes room at once.
//
// Every step takes one token of each sequence that is generating, and fills the rest of the batch
// with prompt tokens: of those admitted before, then of new ones, in the order in which they came.
// A new one is admitted if a slot is free and the cache has room for its prompt, less what it
// shares with sequences before it. If the cache is used up while sequences grow, the one admitted
// last gives up its place and waits again; what it had generated becomes part of its prompt.
//
// What a sequence produces does not depend on its mates, nor on having been interrupted: the
// library gives the same logits whatever shares the batch, and each sequence keeps its sampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  std::size_t prompt_tokens = 0;      // evaluated
  std::size_t cached_tokens = 0;      // of prompts, taken from the cache
  std::size_t recomputed_tokens = 0;  // evaluated again after an interruption
  std::size_t answering = 0;          // sequences that had tokens of their answer before
  std::size_t output_tokens = 0;
  std::size_t preemptions = 0;
};

class Scheduler {
 public:
  explicit Scheduler(StepModel& model);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  // Whether a sequence more could soon have a slot.
  bool wants_more() const noexcept { return active() < slots_; }
  bool idle() const noexcept { return active() == 0; }
  // Sequences that run or wait.
  std::size_t active() const noexcept { return running_.size() + waiting_.size(); }

  // Takes a sequence and returns a number of its own for it.
  std::uint64_t add(Sequence sequence);
  // One evaluate(); appends the sequences that it finished. False if the step was cancelled.
  bool step(std::vector<Finished>& finished, StepCounts& counts);

 private:
  struct Row;

  void build_batch(StepCounts& counts);
  void add_generating(StepCounts& counts);
  void add_prompts(StepCounts& counts);
  void admit(StepCounts& counts);
  bool admit_next(StepCounts& counts);
  void add_tokens(Row& row, std::size_t count, StepCounts& counts);
  void preempt_last(StepCounts& counts);
  void take_token(Row& row, std::span<const float> logits, std::vector<Finished>& finished,
                  StepCounts& counts);
  void finish(Row& row, FinishReason reason, std::vector<Finished>& finished);

  StepModel& model_;
  std::size_t slots_;
  std::vector<std::size_t> free_slots_;
  std::vector<std::unique_ptr<Row>> running_;  // in the order of their admission
  std::deque<std::unique_ptr<Row>> waiting_;   // the next one in front
  std::uint64_t next_id_ = 0;
  std::vector<BatchEntry> batch_;
  std::vector<Row*> outputs_;  // whose logits this step asked for, in batch order
};

}  // namespace lockstep::batch
