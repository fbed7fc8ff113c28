// Perplexity of a text, and KL divergence from a reference run on it.
//
// The text is cut into chunks of `context` tokens, each evaluated on its own from an empty cache,
// the first token replaced by BOS if the model asks for one. The second half of a chunk is scored:
// position i predicts token i + 1, for context / 2 <= i < context - 1. This is the convention of
// the public perplexity tool, so the figures can be compared with published ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/evaluate/logits_file.h"
#include "runtime/evaluate/statistics.h"

namespace lockstep::evaluate {

// Tokens per evaluate(): several short chunks at once, or a piece of a long one. Bounded so that
// the logits of a step fit `kLogitBytes`.
inline constexpr std::size_t kStepTokens = 512;
inline constexpr std::size_t kLogitBytes = std::size_t{128} << 20;

struct EvaluationText {
  std::size_t context = 0;
  std::size_t chunks = 0;
  std::vector<TokenId> tokens;  // [chunks, context]

  // As many whole chunks as the tokens give, at most `max_chunks` if that is not 0. Throws
  // Error(bad_input) if there are fewer than two: no estimate without an error.
  static EvaluationText cut(std::vector<TokenId> tokens, std::size_t context,
                            std::size_t max_chunks);
  // The text of a reference run, or its first `max_chunks` chunks.
  static EvaluationText of(const LogitsReader& base, std::size_t max_chunks);

  LogitsHeader header(std::size_t vocabulary) const noexcept {
    return {context, vocabulary, chunks};
  }
};

// The session that evaluates texts of this context: as many slots as chunks fit one step.
SessionOptions session_options(const Model& model, std::size_t context, KvType kv_type);

class EvaluationObserver {
 public:
  virtual ~EvaluationObserver() = default;
  // After every step that completed chunks.
  virtual void on_chunks(std::size_t done, std::size_t total, const ScoreStatistics& so_far) = 0;
};

struct Evaluation {
  ScoreStatistics statistics;
  std::uint64_t tokens = 0;       // evaluated
  std::uint64_t logits_hash = 0;  // of every scored row
};

// `base` and `save` may be null. The result does not depend on threads or on how chunks share
// steps. Throws Error(interrupted) after the step in which `stop` was raised, Error(bad_model) for
// logits that are not finite.
Evaluation evaluate_text(Session& session, const EvaluationText& text, const LogitsReader* base,
                         LogitsWriter* save, const std::atomic<bool>& stop,
                         EvaluationObserver& observer);

}  // namespace lockstep::evaluate
