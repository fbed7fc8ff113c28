// A model family: which weights it has, and its forward pass as a graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/graph.h"
#include "runtime/models/config.h"
#include "runtime/weights.h"

namespace lockstep {

// The inputs of one step: n tokens of any sequences, of which m want logits.
struct StepInputs {
  ops::Value tokens;      // i32 [n]
  ops::Value positions;   // i32 [n]
  ops::Value slots;       // i32 [n]
  ops::Value logit_rows;  // i32 [m]: which of the n tokens
  ops::Value blocks;      // i32 [slots, blocks of a slot]: where they lie in the cache
};

// One layer's cache, each [kv_heads, blocks, positions of a block, head_dim].
struct LayerCache {
  ops::Tensor keys;
  ops::Tensor values;
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  // Appends the whole forward pass and returns the logits, f32 [m, vocabulary]; with m = 0 the
  // hidden states, f32 [n, width].
  virtual ops::Value forward(ops::Graph& graph, const StepInputs& inputs,
                             std::span<const LayerCache> cache) const = 0;
};

// A file with a format that only this project knows says so in general.architecture: other tools
// then refuse it by that name before they meet a tensor they cannot size. All other keys stay as
// they are, under the prefix of the real architecture, which has a key of its own.
inline constexpr char kOwnArchitecture[] = "lockstep";
inline constexpr char kRealArchitectureKey[] = "lockstep.architecture";

// The architecture by which to read the file. Throws Error(bad_model) if a key is missing.
const std::string& architecture_of(const GgufFile& file);

// The table row for architecture_of(file). Throws Error(bad_model) naming what is supported.
const ArchitectureTraits& find_architecture(const GgufFile& file);

// Asks `loader` for all weights of the model. `workers` is the team that will run it.
std::unique_ptr<Architecture> make_architecture(const ModelConfig& config, WeightLoader& loader,
                                                unsigned workers);

}  // namespace lockstep
