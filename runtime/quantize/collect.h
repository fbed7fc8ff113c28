// Collecting an importance matrix: the model reads a text in chunks of one context, each from an
// empty cache, and the session sums up the squares of what every matrix is multiplied with.
//
// Chunks are cut as the public tool cuts them: the whole text is tokenized once, every run of
// `context` tokens is a chunk, the first token of each is replaced by BOS if the model asks for
// one, and what is left at the end is dropped.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/lockstep.h"
#include "runtime/quantize/importance.h"

namespace lockstep::quantize {

struct CollectOptions {
  std::size_t context = 512;  // tokens of a chunk
  std::size_t chunks = 0;     // at most so many; 0: all
  bool output = false;        // the output matrix too
};

struct CollectHooks {
  // Chunks done and in all; after each.
  std::function<void(std::size_t done, std::size_t total)> progress;
  const std::atomic<bool>* stop = nullptr;  // raised: Error(interrupted) after the step
};

// `dataset`: the text's name, kept in the matrix. Any team collects the same bits. Throws
// Error(bad_input) for a text of less than one chunk, Error(bad_model) if the activations are not
// finite, Error(usage), Error(no_resource), Error(interrupted).
ImportanceMatrix collect_importance(const Model& model, std::string_view text,
                                    const std::string& dataset, const CollectOptions& options,
                                    const CollectHooks& hooks);

}  // namespace lockstep::quantize
