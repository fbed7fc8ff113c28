// Chunks in, sums out.
#include "runtime/quantize/collect.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "lockstep/error.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::quantize {

namespace {

// Tokens evaluated together. Part of the definition of the sums: a step is rounded to f32.
constexpr std::size_t kStep = 512;

void evaluate_chunk(Session& session, std::span<const TokenId> tokens, bool output,
                    const CollectHooks& hooks) {
  session.truncate(0, 0);
  std::vector<BatchEntry> batch;
  for (std::size_t begin = 0; begin < tokens.size(); begin += kStep) {
    if (hooks.stop != nullptr && hooks.stop->load(std::memory_order_relaxed)) {
      throw Error(ErrorCode::interrupted, "stopped by a signal; nothing was written");
    }
    const std::size_t end = std::min(tokens.size(), begin + kStep);
    batch.clear();
    for (std::size_t i = begin; i < end; ++i) {
      batch.push_back({tokens[i], static_cast<std::int32_t>(i), 0, output});
    }
    session.evaluate(batch);
  }
}

ImportanceEntry entry_of(const ActivationSquares& squares) {
  ImportanceEntry entry;
  entry.counts = {static_cast<float>(squares.tokens)};
  for (const double sum : squares.sums) {
    entry.sums.push_back(static_cast<float>(sum));
    if (!std::isfinite(entry.sums.back())) {
      throw Error(ErrorCode::bad_model, "the model multiplies " + squares.matrix +
                                            " with numbers that are not finite; an importance "
                                            "matrix cannot be made of them");
    }
  }
  return entry;
}

}  // namespace

ImportanceMatrix collect_importance(const Model& model, std::string_view text,
                                    const std::string& dataset, const CollectOptions& options,
                                    const CollectHooks& hooks) {
  if (options.context == 0) throw Error(ErrorCode::usage, "the context must be at least 1");
  const Tokenizer& tokenizer = model.tokenizer();
  std::vector<TokenId> tokens = tokenizer.encode(text, {.add_bos = true, .parse_special = false});
  const std::size_t whole = tokens.size() / options.context;
  if (whole == 0) {
    throw Error(ErrorCode::bad_input, dataset + ": the text has " + std::to_string(tokens.size()) +
                                          " tokens, one chunk needs " +
                                          std::to_string(options.context) +
                                          "; give more text or a smaller context");
  }
  const std::size_t chunks = options.chunks == 0 ? whole : std::min(whole, options.chunks);
  SessionOptions session_options;
  session_options.context = options.context;
  session_options.max_batch = kStep;
  session_options.activation_squares = true;
  Session session(model, session_options);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::span<TokenId> part(tokens.data() + chunk * options.context, options.context);
    if (tokenizer.adds_bos() && tokenizer.bos() != kNoToken) part[0] = tokenizer.bos();
    evaluate_chunk(session, part, options.output, hooks);
    if (hooks.progress) hooks.progress(chunk + 1, chunks);
  }
  ImportanceMatrix matrix;
  matrix.datasets = {dataset};
  matrix.chunk_count = static_cast<std::uint32_t>(chunks);
  matrix.chunk_size = static_cast<std::uint32_t>(options.context);
  for (const ActivationSquares& squares : session.activation_squares()) {
    matrix.entries.emplace(squares.matrix, entry_of(squares));
  }
  return matrix;
}

}  // namespace lockstep::quantize
