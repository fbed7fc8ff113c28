// Running a model in tests: greedy continuations and teacher-forced logits through the public API.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/fingerprint.h"

namespace lockstep::test {

inline std::filesystem::path demo_model() {
  return std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "runtime/demo/storyteller-f16.gguf";
}

inline Engine make_engine(unsigned threads, const std::string& isa = {}) {
  EngineOptions options;
  options.threads = threads;
  options.isa = isa;
  return Engine::create(options);
}

// Feeds tokens to one slot in chunks of `chunk`; logits of every token if `all`, else of the last.
inline std::vector<std::vector<float>> feed(Session& session, std::span<const std::int32_t> tokens,
                                            std::size_t chunk, bool all, std::int32_t slot = 0) {
  std::vector<std::vector<float>> logits;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::size_t end = std::min(tokens.size(), begin + chunk);
    const std::size_t base = session.length(static_cast<std::size_t>(slot));
    std::vector<BatchEntry> batch;
    std::size_t wanted = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const bool want = all || i + 1 == tokens.size();
      wanted += want;
      batch.push_back({tokens[i], static_cast<std::int32_t>(base + i - begin), slot, want});
    }
    session.evaluate(batch);
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::span<const float> row = session.logits(i);
      logits.emplace_back(row.begin(), row.end());
    }
  }
  return logits;
}

inline std::int32_t argmax(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline std::uint64_t hash_logits(const std::vector<std::vector<float>>& rows) {
  Fingerprint fingerprint;
  for (const std::vector<float>& row : rows) fingerprint.add(row);
  return fingerprint.value();
}

}  // namespace lockstep::test
