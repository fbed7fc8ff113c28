// One repetition is one walk through the tokens of a test; the roofs are measured just before it.
#include "runtime/bench/model_bench.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/engine.h"
#include "runtime/fingerprint.h"

namespace lockstep::bench {
namespace {

SessionOptions with_timing(SessionOptions options) {
  options.time_barriers = true;
  return options;
}

}  // namespace

Samples ModelResult::tokens_per_s() const {
  Samples rates;
  for (const double time : seconds.values) rates.add(static_cast<double>(test.tokens()) / time);
  return rates;
}

double ModelResult::seconds_in_all() const {
  return std::accumulate(seconds.values.begin(), seconds.values.end(), 0.0);
}

TokenWork TokenWork::of(const ModelInfo& model) {
  const auto width = static_cast<double>(model.width);
  const auto heads = static_cast<double>(model.heads * model.head_dim);
  const auto kv = static_cast<double>(model.kv_heads * model.head_dim);
  const auto feed_forward = static_cast<double>(model.feed_forward);
  return {static_cast<double>(model.layers) * width * (2 * heads + 2 * kv + 3 * feed_forward),
          width * static_cast<double>(model.vocabulary)};
}

std::int32_t token_at(std::size_t i, std::size_t vocabulary) {
  return static_cast<std::int32_t>((i * 7919 + 13) % vocabulary);
}

bool is_dense(const ModelInfo& model) {
  return std::all_of(model.kernels.begin(), model.kernels.end(), [](const std::string& kernel) {
    return kernel.starts_with("f32/") || kernel.starts_with("f16/") || kernel.starts_with("bf16/");
  });
}

void evaluate_tokens(Session& session, std::size_t begin, std::size_t count, std::size_t chunk,
                     ModelResult* result, std::size_t slot) {
  const ModelInfo& model = session.model().info();
  const TokenWork work = TokenWork::of(model);
  std::vector<BatchEntry> batch;
  const auto note = [&] {
    result->weight_bytes += session.stats().weight_bytes;
    result->macs +=
        work.layers * static_cast<double>(batch.size()) + (batch.back().logits ? work.output : 0.0);
    result->barriers = session.stats().barriers;
    result->barrier_seconds += session.stats().barrier_seconds;
  };
  std::size_t at = begin;
  session.evaluate_each([&]() -> std::span<const BatchEntry> {
    if (result != nullptr && !batch.empty()) note();
    batch.clear();
    const std::size_t end = std::min(begin + count, at + chunk);
    for (; at < end; ++at) {
      const bool wanted = chunk == 1 || at + 1 == begin + count;
      batch.push_back({token_at(at, model.vocabulary), static_cast<std::int32_t>(at),
                       static_cast<std::int32_t>(slot), wanted});
    }
    return batch;
  });
}

ModelBench::ModelBench(const Model& model, const SessionOptions& options)
    : session_(model, with_timing(options)),
      stream_(model.engine()),
      dense_(is_dense(model.info())) {}

void ModelBench::sample(ModelResult& result) {
  const ModelTest& test = result.test;
  const Engine& engine = session_.model().engine();
  result.stream_bytes_per_s.add(stream_.measure());
  result.peak_macs_per_s.add(measure_peak(engine, engine.impl().isa, dense_));
  session_.truncate(0, 0);
  evaluate_tokens(session_, 0, test.depth, test.batch, nullptr);
  result.weight_bytes = 0;
  result.macs = 0;
  const double begin = seconds();
  evaluate_tokens(session_, test.depth, test.prompt, test.batch, &result);
  evaluate_tokens(session_, test.depth + test.prompt, test.generate, 1, &result);
  result.seconds.add(seconds() - begin);
  Fingerprint fingerprint;
  fingerprint.add(session_.logits(0));
  result.logits_hash = fingerprint.value();
}

}  // namespace lockstep::bench
