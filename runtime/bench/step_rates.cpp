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
    for (std::size_t i = 0; i < session.options().context; ++i) {
      tokens_.push_back(token_at(i, vocabulary));
    }
  }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  ~Rehearsal() {
    for (std::size_t slot = 0; slot < session_.options().slots; ++slot) session_.truncate(slot, 0);
  }

  // Evaluates positions [from, to) of a slot, in steps as full as the session allows. Returns how
  // long that took.
  double prompt(std::size_t slot, std::size_t from, std::size_t to) {
    const double begin = seconds();
    evaluate_tokens(session_, from, to - from, session_.options().max_batch, nullptr, slot);
    return seconds() - begin;
  }

  // Puts the prompt that was in slot 0 into as many slots, up to `together`, as the cache has room
  // for to grow; into one at least. Returns how many have it.
  std::size_t fill(std::size_t depth, std::size_t together) {
    session_.truncate(0, 0);
    std::size_t slots = 0;
    for (; slots < together; ++slots) {
      const std::size_t found =
          session_.adopt(slots, std::span<const std::int32_t>(tokens_).first(depth));
      const std::size_t growth = (slots + 1) * 2 * session_.cache_room().block;
      const bool grows = slots == 0 || session_.cache_room().available >= growth;
      if (session_.room(slots) < depth - found || !grows) break;
      prompt(slots, found, depth);
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
      for (std::size_t slot = 0; slot < slots; ++slot) {
        batch_.push_back({tokens_[depth + step], static_cast<std::int32_t>(depth + step),
                          static_cast<std::int32_t>(slot), true});
      }
      const double begin = seconds();
      session_.evaluate(batch_);
      if (step >= kWarmSteps || steps <= kWarmSteps) samples.add(seconds() - begin);
    }
    return steps == 0 ? 0 : samples.median();
  }

 private:
  Session& session_;
  std::vector<std::int32_t> tokens_;
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
  rehearsal.prompt(0, 0, measured);  // warms up
  session.truncate(0, 0);
  const double seconds = rehearsal.prompt(0, 0, measured);
  rehearsal.prompt(0, measured, depth);
  rates.prompt_tokens_per_s = rate(measured, seconds);
  rates.together = rehearsal.fill(depth, std::min(together, session.options().slots));
  rates.answer_tokens_per_s = rate(rates.together, rehearsal.answer(depth, rates.together));
  return rates;
}

}  // namespace lockstep::bench
