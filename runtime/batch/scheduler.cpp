// See scheduler.h for the policy.
#include "runtime/batch/scheduler.h"

#include <algorithm>
#include <utility>

namespace lockstep::batch {

// A sequence with all tokens that it has so far. Those from `evaluated` on are yet to be evaluated;
// the logits of the last one give the next token.
struct Scheduler::Row {
  Row(std::uint64_t number, Sequence taken, const StepModel& model)
      : id(number),
        prompt_tokens(taken.prompt.size()),
        end(prompt_tokens + taken.max_tokens),
        tokens(std::move(taken.prompt)),
        answer(std::move(taken), tokens, model) {}

  std::size_t pending() const noexcept { return tokens.size() - evaluated; }
  bool generating() const noexcept { return tokens.size() > prompt_tokens && pending() == 1; }
  // Positions that it takes before long: what is pending, and a block to grow.
  std::size_t soon_needed(std::size_t block) const noexcept {
    return std::min(pending() + block, end - evaluated);
  }

  std::uint64_t id;
  std::size_t prompt_tokens;
  std::size_t end;  // tokens that prompt and answer have at most
  std::vector<TokenId> tokens;
  Answer answer;
  std::size_t slot = 0;
  std::size_t evaluated = 0;  // positions in the cache after the step that is being built
  std::size_t reached = 0;    // the most that `evaluated` ever was
};

Scheduler::Scheduler(StepModel& model) : model_(model), slots_(model.slots()) {
  if (model.slots() == 0 || model.slots() > model.max_batch()) {
    throw Error(ErrorCode::usage,
                "the number of slots must be at least 1 and at most the batch size");
  }
  for (std::size_t slot = slots_; slot-- > 0;) free_slots_.push_back(slot);
}

Scheduler::~Scheduler() = default;

std::uint64_t Scheduler::add(Sequence sequence) {
  waiting_.push_back(std::make_unique<Row>(next_id_, std::move(sequence), model_));
  return next_id_++;
}

void Scheduler::build_batch(StepCounts& counts) {
  batch_.clear();
  outputs_.clear();
  add_generating(counts);
  add_prompts(counts);
  admit(counts);
  // Prompts that were admitted side by side can have used up the cache between them.
  while (batch_.empty()) {
    preempt_last(counts);
    add_prompts(counts);
  }
}

void Scheduler::add_generating(StepCounts& counts) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Row& row = *running_[i];
    if (!row.generating()) continue;
    while (model_.room(row.slot) == 0) {
      const bool itself = i + 1 == running_.size();
      preempt_last(counts);
      if (itself) return;
    }
    add_tokens(row, 1, counts);
    ++counts.answering;
  }
}

void Scheduler::add_prompts(StepCounts& counts) {
  for (const std::unique_ptr<Row>& row : running_) {
    if (row->pending() == 0) continue;  // in the batch already
    const std::size_t left = model_.max_batch() - batch_.size();
    add_tokens(*row, std::min({row->pending(), left, model_.room(row->slot)}), counts);
  }
}

void Scheduler::admit(StepCounts& counts) {
  while (!waiting_.empty() && !free_slots_.empty() && batch_.size() < model_.max_batch()) {
    if (!admit_next(counts)) break;
  }
}

// False if the cache has no room for it now.
bool Scheduler::admit_next(StepCounts& counts) {
  Row& row = *waiting_.front();
  row.slot = free_slots_.back();
  const std::size_t cached = model_.adopt(row.slot, row.tokens);
  // Where others run, they get theirs first, else the next steps would only preempt this one.
  row.evaluated = cached;
  std::size_t needed = row.soon_needed(model_.cache_block());
  for (const auto& other : running_) needed += other->soon_needed(model_.cache_block());
  if (!running_.empty() && model_.cache_available() < needed) {
    row.evaluated = 0;
    model_.clear(row.slot);
    return false;
  }
  if (row.reached == 0) counts.cached_tokens += cached;
  row.reached = std::max(row.reached, cached);
  free_slots_.pop_back();
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  const std::size_t left = model_.max_batch() - batch_.size();
  add_tokens(row, std::min({row.pending(), left, model_.room(row.slot)}), counts);
  return true;
}

void Scheduler::add_tokens(Row& row, std::size_t count, StepCounts& counts) {
  if (count == 0) return;
  if (!model_.reserve(row.slot, {&row.tokens[row.evaluated], count})) {
    throw Error(ErrorCode::internal, "the cache has less room than it said");
  }
  for (const std::size_t end = row.evaluated + count; row.evaluated < end; ++row.evaluated) {
    const bool last = row.evaluated + 1 == row.tokens.size();
    batch_.push_back({row.tokens[row.evaluated], static_cast<std::int32_t>(row.evaluated),
                      static_cast<std::int32_t>(row.slot), last});
    if (last) outputs_.push_back(&row);
    if (row.evaluated < row.reached) {
      ++counts.recomputed_tokens;
    } else if (row.evaluated < row.prompt_tokens) {
      ++counts.prompt_tokens;
    }
  }
  row.reached = std::max(row.reached, row.evaluated);
}

void Scheduler::preempt_last(StepCounts& counts) {
  if (running_.size() < 2) {
    throw Error(ErrorCode::internal, "the cache has no room for a single sequence");
  }
  std::unique_ptr<Row> row = std::move(running_.back());
  running_.pop_back();
  model_.clear(row->slot);
  free_slots_.push_back(row->slot);
  row->evaluated = 0;
  waiting_.push_front(std::move(row));
  ++counts.preemptions;
}

bool Scheduler::step(std::vector<Finished>& finished, StepCounts& counts) {
  build_batch(counts);
  if (!model_.evaluate(batch_)) return false;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    take_token(*outputs_[i], model_.logits(i), finished, counts);
  }
  std::erase(running_, nullptr);
  return true;
}

void Scheduler::take_token(Row& row, std::span<const float> logits, std::vector<Finished>& finished,
                           StepCounts& counts) {
  const std::size_t before = row.answer.tokens().size();
  const std::optional<FinishReason> reason = row.answer.take(logits, model_);
  if (row.answer.tokens().size() > before) {
    row.tokens.push_back(row.answer.last());
    ++counts.output_tokens;
  }
  if (reason) finish(row, *reason, finished);
}

void Scheduler::finish(Row& row, FinishReason reason, std::vector<Finished>& finished) {
  Finished& done = finished.emplace_back(row.answer.finish(reason));
  done.id = row.id;
  done.prompt_tokens = row.prompt_tokens;
  if (done.shows_ids) {
    row.tokens.resize(row.prompt_tokens);
    done.prompt_ids = std::move(row.tokens);
  }
  model_.clear(row.slot);
  free_slots_.push_back(row.slot);
  std::find_if(running_.begin(), running_.end(), [&row](const auto& one) {
    return one.get() == &row;
  })->reset();
}

}  // namespace lockstep::batch
