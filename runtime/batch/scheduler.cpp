// See scheduler.h for the policy.
#include "runtime/batch/scheduler.h"

#include <algorithm>
#include <utility>

namespace lockstep::batch {

struct Scheduler::Slot {
  explicit Slot(Sequence taken) : sequence(std::move(taken)), sampler(sequence.sampling) {
    for (const std::string& stop : sequence.stop)
      longest_stop = std::max(longest_stop, stop.size());
  }

  bool generating() const noexcept { return evaluated >= sequence.prompt.size(); }

  Sequence sequence;
  Sampler sampler;
  std::size_t evaluated = 0;  // positions in the cache after the step that is being built
  TokenId next = kNoToken;    // generated, not yet evaluated
  std::size_t output_tokens = 0;
  std::string text;
  std::size_t longest_stop = 0;
};

namespace {

BatchEntry entry(TokenId token, std::size_t position, std::size_t slot, bool logits) {
  return {token, static_cast<std::int32_t>(position), static_cast<std::int32_t>(slot), logits};
}

// Where the earliest stop string begins in `text`, or npos. Only the last `fresh` bytes are new; a
// match may begin up to the longest stop string before them.
std::size_t find_stop(const std::string& text, std::size_t fresh,
                      const std::vector<std::string>& stops, std::size_t longest) {
  if (stops.empty()) return std::string::npos;
  const std::size_t window = std::min(text.size(), fresh + longest - 1);
  std::size_t earliest = std::string::npos;
  for (const std::string& stop : stops) {
    earliest = std::min(earliest, text.find(stop, text.size() - window));
  }
  return earliest;
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
  *free = std::make_unique<Slot>(std::move(sequence));
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
    batch_.push_back(entry(slot.next, slot.evaluated, index, true));
    outputs_.push_back(index);
    ++slot.evaluated;
  }
  const std::size_t max_batch = model_.max_batch();
  const std::size_t generating = batch_.size();
  for (const std::size_t index : order_) {
    Slot& slot = *slots_[index];
    const std::vector<TokenId>& prompt = slot.sequence.prompt;
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
  Slot& slot = *slots_[index];
  const std::optional<TokenId> token = slot.sampler.sample(logits);
  if (!token) return finish(index, FinishReason::non_finite, finished);
  slot.next = *token;
  ++slot.output_tokens;
  ++counts.output_tokens;
  if (model_.ends_generation(*token)) return finish(index, FinishReason::stop, finished);
  const std::string piece = model_.piece(*token);
  slot.text += piece;
  const std::size_t stop =
      find_stop(slot.text, piece.size(), slot.sequence.stop, slot.longest_stop);
  if (stop != std::string::npos) {
    slot.text.resize(stop);
    return finish(index, FinishReason::stop, finished);
  }
  if (slot.output_tokens >= slot.sequence.max_tokens) finish(index, FinishReason::length, finished);
}

void Scheduler::finish(std::size_t index, FinishReason reason, std::vector<Finished>& finished) {
  Slot& slot = *slots_[index];
  finished.push_back(
      {index, reason, std::move(slot.text), slot.sequence.prompt.size(), slot.output_tokens});
  slots_[index] = nullptr;
  --active_;
  model_.clear(index);
}

}  // namespace lockstep::batch
