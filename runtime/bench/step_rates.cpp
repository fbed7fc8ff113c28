// The sequences that answer share one prompt, so that only one has to be computed to measure steps
// at the right depth.
#include "runtime/bench/step_rates.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/bench/model_bench.h"
#include "runtime/bench/samples.h"

namespace lockstep::bench {

namespace {

constexpr std::size_t kAnswerSteps = 12;
constexpr std::size_t kWarmSteps = 2;  // of these
// Prompt tokens: enough for a figure, few enough for an answer soon.
constexpr std::size_t kMeasuredPrompt = 512;

class Rehearsal {
 public:
  explicit Rehearsal(Session& session) : session_(session) {
    const std::size_t vocabulary = session.model().info().vocabulary;
    for (std::size_t i = 0; i < session.options().context + 1; ++i) {
      tokens_.push_back(token_at(i, vocabulary));
    }
  }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  ~Rehearsal() {
    for (std::size_t slot = 0; slot < session_.options().slots; ++slot) session_.truncate(slot, 0);
  }

  // The same work as prompt(0, to), with other tokens, which nobody shares afterwards.
  void warm_up(std::size_t to) {
    shift_ = 1;
    prompt(0, to);
    session_.truncate(0, 0);
    shift_ = 0;
  }

  // Seconds for positions [from, to) of slot 0, in steps as full as the session allows.
  double prompt(std::size_t from, std::size_t to) {
    const double begin = seconds();
    while (from < to) {
      const std::size_t count = std::min(to - from, session_.options().max_batch);
      batch_.clear();
      for (std::size_t i = 0; i < count; ++i) add(0, from + i, from + i + 1 == to);
      session_.evaluate(batch_);
      from += count;
    }
    return seconds() - begin;
  }

  // Puts the prompt of slot 0 into more slots up to `together`, as long as the cache has room for
  // all of them to grow. Returns how many have it.
  std::size_t fill(std::size_t depth, std::size_t together) {
    std::size_t slots = 1;
    for (; slots < together; ++slots) {
      const std::size_t found =
          session_.adopt(slots, std::span<const std::int32_t>(tokens_).first(depth));
      const std::size_t growth = (slots + 1) * 2 * session_.cache_room().block;
      if (session_.room(slots) < depth - found || session_.cache_room().available < growth) break;
      batch_.clear();
      for (std::size_t i = found; i < depth; ++i) add(slots, i, false);
      session_.evaluate(batch_);
    }
    if (slots < together) session_.truncate(slots, 0);
    return slots;
  }

  // Median seconds of a step that gives each of these slots one token.
  double answer(std::size_t depth, std::size_t slots) {
    Samples samples;
    const std::size_t steps = std::min(kAnswerSteps, session_.options().context - depth);
    for (std::size_t step = 0; step < steps; ++step) {
      batch_.clear();
      for (std::size_t slot = 0; slot < slots; ++slot) add(slot, depth + step, true);
      const double begin = seconds();
      session_.evaluate(batch_);
      if (step >= kWarmSteps || steps <= kWarmSteps) samples.add(seconds() - begin);
    }
    return steps == 0 ? 0 : samples.median();
  }

 private:
  void add(std::size_t slot, std::size_t position, bool logits) {
    batch_.push_back({tokens_[position + shift_], static_cast<std::int32_t>(position),
                      static_cast<std::int32_t>(slot), logits});
  }

  Session& session_;
  std::vector<std::int32_t> tokens_;
  std::size_t shift_ = 0;
  std::vector<BatchEntry> batch_;
};

double rate(std::size_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

StepRates measure_step_rates(Session& session, std::size_t depth, std::size_t together) {
  const std::size_t context = session.options().context;
  depth = std::clamp<std::size_t>(depth, 1, context > kAnswerSteps ? context - kAnswerSteps : 1);
  const std::size_t measured = std::min(depth, kMeasuredPrompt);
  Rehearsal rehearsal(session);
  StepRates rates;
  rehearsal.warm_up(measured);
  const double seconds = rehearsal.prompt(0, measured);
  rehearsal.prompt(measured, depth);
  rates.prompt_tokens_per_s = rate(measured, seconds);
  rates.together = rehearsal.fill(depth, std::min(together, session.options().slots));
  rates.answer_tokens_per_s = rate(rates.together, rehearsal.answer(depth, rates.together));
  return rates;
}

}  // namespace lockstep::bench
