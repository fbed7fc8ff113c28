// See scheduler.h for the policy.
#include "runtime/batch/scheduler.h"

#include <algorithm>
#include <utility>

namespace lockstep::batch {

struct Scheduler::Slot {
  Slot(Sequence taken, const StepModel& model)
      : prompt(std::move(taken.prompt)), answer(std::move(taken), prompt, model) {}

  bool generating() const noexcept { return evaluated >= prompt.size(); }

  std::vector<TokenId> prompt;
  Answer answer;
  std::size_t evaluated = 0;  // positions in the cache after the step that is being built
};

namespace {

BatchEntry entry(TokenId token, std::size_t position, std::size_t slot, bool logits) {
  return {token, static_cast<std::int32_t>(position), static_cast<std::int32_t>(slot), logits};
}

}  // namespace

Scheduler::Scheduler(StepModel& model) : model_(model), slots_(model.slots()) {
  if (model.slots() == 0 || model.slots() > model.max_batch()) {
    throw Error(ErrorCode::usage,
                "the number of slots must be at least 1 and at most the batch size");
  }
}

Scheduler::~Scheduler() = default;

std::size_t Scheduler::admit(Sequence sequence) {
  const auto free = std::find(slots_.begin(), slots_.end(), nullptr);
  if (free == slots_.end())
    throw Error(ErrorCode::internal, "a sequence was admitted without a free slot");
  *free = std::make_unique<Slot>(std::move(sequence), model_);
  const auto slot = static_cast<std::size_t>(free - slots_.begin());
  order_.push_back(slot);
  ++active_;
  return slot;
}

void Scheduler::build_batch(StepCounts& counts) {
  batch_.clear();
  outputs_.clear();
  for (const std::size_t index : order_) {
    Slot& slot = *slots_[index];
    if (!slot.generating()) continue;
    batch_.push_back(entry(slot.answer.last(), slot.evaluated, index, true));
    outputs_.push_back(index);
    ++slot.evaluated;
  }
  const std::size_t max_batch = model_.max_batch();
  const std::size_t generating = batch_.size();
  for (const std::size_t index : order_) {
    Slot& slot = *slots_[index];
    const std::vector<TokenId>& prompt = slot.prompt;
    while (slot.evaluated < prompt.size() && batch_.size() < max_batch) {
      const bool last = slot.evaluated + 1 == prompt.size();
      batch_.push_back(entry(prompt[slot.evaluated], slot.evaluated, index, last));
      if (last) outputs_.push_back(index);
      ++slot.evaluated;
    }
  }
  counts.prompt_tokens += batch_.size() - generating;
}

bool Scheduler::step(std::vector<Finished>& finished, StepCounts& counts) {
  build_batch(counts);
  if (!model_.evaluate(batch_)) return false;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    take_token(outputs_[i], model_.logits(i), finished, counts);
  }
  std::erase_if(order_, [this](std::size_t slot) { return slots_[slot] == nullptr; });
  return true;
}

void Scheduler::take_token(std::size_t index, std::span<const float> logits,
                           std::vector<Finished>& finished, StepCounts& counts) {
  Answer& answer = slots_[index]->answer;
  const std::size_t before = answer.tokens().size();
  const std::optional<FinishReason> reason = answer.take(logits, model_);
  counts.output_tokens += answer.tokens().size() - before;
  if (reason) finish(index, *reason, finished);
}

void Scheduler::finish(std::size_t index, FinishReason reason, std::vector<Finished>& finished) {
  Slot& slot = *slots_[index];
  Finished& done = finished.emplace_back(slot.answer.finish(reason));
  done.slot = index;
  done.prompt_tokens = slot.prompt.size();
  if (done.shows_ids) done.prompt_ids = std::move(slot.prompt);
  slots_[index] = nullptr;
  --active_;
  model_.clear(index);
}

}  // namespace lockstep::batch
