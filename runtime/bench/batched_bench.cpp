// Sequences decode in lockstep, each in a slot of its own.
#include "runtime/bench/batched_bench.h"

#include <algorithm>
#include <vector>

#include "runtime/bench/model_bench.h"
#include "runtime/engine.h"

namespace lockstep::bench {
namespace {

// Adds tokens to a batch and evaluates it whenever it is full.
class Feeder {
 public:
  Feeder(Session& session, std::size_t size, const std::atomic<bool>& cancel)
      : session_(session), size_(size), cancel_(cancel) {}

  void add(std::size_t slot, std::size_t position, bool logits) {
    const std::size_t vocabulary = session_.model().info().vocabulary;
    batch_.push_back({token_at(position + 31 * slot, vocabulary),
                      static_cast<std::int32_t>(position), static_cast<std::int32_t>(slot),
                      logits});
    if (batch_.size() == size_) flush();
  }
  void flush() {
    if (cancel_.load()) throw Error(ErrorCode::interrupted, "cancelled");
    if (!batch_.empty()) session_.evaluate(batch_);
    batch_.clear();
  }

 private:
  Session& session_;
  std::size_t size_;
  const std::atomic<bool>& cancel_;
  std::vector<BatchEntry> batch_;
};

}  // namespace

double BatchedResult::prompt_tokens_per_s() const {
  return static_cast<double>(test.prompt * test.sequences) / prompt_seconds.median();
}
double BatchedResult::generate_tokens_per_s() const {
  return static_cast<double>(test.generate * test.sequences) / generate_seconds.median();
}
double BatchedResult::share_of_roof() const {
  const double step = generate_seconds.median() / static_cast<double>(test.generate);
  return std::max(static_cast<double>(step_bytes) / stream_bytes_per_s.median(),
                  step_macs / peak_macs_per_s.median()) /
         step;
}

BatchedResult BatchedBench::run(const BatchedTest& test, std::size_t repetitions,
                                const std::atomic<bool>& cancel,
                                const std::function<void(const Session&)>& look) {
  SessionOptions options = options_;
  options.context = test.prompt + test.generate;
  options.slots = test.sequences;
  options.max_batch = std::max(test.batch, test.sequences);
  Session session(model_, options);
  const TokenWork work = TokenWork::of(model_.info());
  const Engine& engine = model_.engine();
  const bool dense = is_dense(model_.info());
  BatchedResult result;
  result.test = test;
  result.step_macs = (work.layers + work.output) * static_cast<double>(test.sequences);
  for (std::size_t round = 0; round <= repetitions; ++round) {
    for (std::size_t slot = 0; slot < test.sequences; ++slot) session.truncate(slot, 0);
    const double stream = stream_.measure();
    const double peak = measure_peak(engine, engine.impl().isa, dense);
    Feeder prompts(session, test.batch, cancel);
    const double begin = seconds();
    for (std::size_t slot = 0; slot < test.sequences; ++slot) {
      for (std::size_t i = 0; i < test.prompt; ++i) prompts.add(slot, i, i + 1 == test.prompt);
    }
    prompts.flush();
    const double middle = seconds();
    Feeder steps(session, test.sequences, cancel);
    for (std::size_t i = 0; i < test.generate; ++i) {
      for (std::size_t slot = 0; slot < test.sequences; ++slot) {
        steps.add(slot, test.prompt + i, true);
      }
    }
    const double end = seconds();
    result.step_bytes = session.stats().weight_bytes;
    if (round == 0) continue;
    result.prompt_seconds.add(middle - begin);
    result.generate_seconds.add(end - middle);
    result.stream_bytes_per_s.add(stream);
    result.peak_macs_per_s.add(peak);
  }
  look(session);
  return result;
}

}  // namespace lockstep::bench
