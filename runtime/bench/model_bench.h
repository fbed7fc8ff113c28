// How fast a model runs: prefill, decode, or one after the other, at some depth of the cache. Every
// sample is taken beside the roofs of the moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/lockstep.h"
#include "runtime/bench/roofs.h"
#include "runtime/bench/samples.h"

namespace lockstep::bench {

// `prompt` tokens in chunks of `batch`, then `generate` tokens one by one, behind `depth` tokens
// that are evaluated before the clock starts.
struct ModelTest {
  std::size_t prompt = 0;
  std::size_t generate = 0;
  std::size_t depth = 0;
  std::size_t batch = 512;

  std::size_t tokens() const noexcept { return prompt + generate; }
  std::size_t context() const noexcept { return depth + tokens(); }
};

struct ModelResult {
  ModelTest test;
  Samples seconds;                 // of one repetition
  Samples stream_bytes_per_s;      // the read roof
  Samples peak_macs_per_s;         // the multiply-add roof: int8, or f32 for a dense model
  std::uint64_t weight_bytes = 0;  // read in one repetition
  double macs = 0;                 // multiply-adds with weights in one repetition
  std::uint64_t barriers = 0;      // in the last step
  double barrier_seconds = 0;      // waited at barriers in all repetitions, mean over workers
  std::uint64_t logits_hash = 0;   // of the last token

  Samples tokens_per_s() const;
  double seconds_in_all() const;
  double bytes_per_s() const { return static_cast<double>(weight_bytes) / seconds.median(); }
  double macs_per_s() const { return macs / seconds.median(); }
  double barrier_share() const { return barrier_seconds / seconds_in_all(); }
};

// Multiply-adds with weights for one token, without and with the output matrix.
struct TokenWork {
  double layers = 0;
  double output = 0;
  static TokenWork of(const ModelInfo& model);
};

class ModelBench {
 public:
  // The context and the largest batch are those of all tests. Barriers are timed in any case.
  // Throws as Session.
  ModelBench(const Model& model, const SessionOptions& options);

  // Takes one sample; the first of a test is best thrown away. Throws Error(interrupted) once the
  // cancel flag is set.
  void sample(ModelResult& result);

  std::atomic<bool>& cancel_flag() noexcept { return session_.cancel_flag(); }
  const Session& session() const noexcept { return session_; }

 private:
  Session session_;
  StreamRoof stream_;
  bool dense_;
};

// Evaluates `count` tokens of a slot from position `begin` on, `chunk` at a time, with the logits
// of the last of them. Adds the work done to `result`, if there is one.
void evaluate_tokens(Session& session, std::size_t begin, std::size_t count, std::size_t chunk,
                     ModelResult* result, std::size_t slot = 0);

// A fixed sequence of ids: what the tokens are does not matter to the speed, that they repeat does.
std::int32_t token_at(std::size_t i, std::size_t vocabulary);

// Whether all weight matrices are F32, F16 or BF16.
bool is_dense(const ModelInfo& model);

}  // namespace lockstep::bench
