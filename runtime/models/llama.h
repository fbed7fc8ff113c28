// The llama family: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU
// feed-forward (Touvron et al. 2023, arXiv 2302.13971 and 2307.09288).
#pragma once

#include <vector>

#include "runtime/models/architecture.h"

namespace lockstep {

class LlamaModel final : public Architecture {
 public:
  LlamaModel(const ModelConfig& config, WeightLoader& loader, unsigned workers);

  ops::Value forward(ops::Graph& graph, const StepInputs& inputs,
                     std::span<const LayerCache> cache) const override;

 private:
  struct Layer {
    const std::vector<float>* attention_norm;  // [width]
    const ops::ShardedMatrix* q;               // [q_width, width]
    const ops::ShardedMatrix* k;               // [kv_width, width]
    const ops::ShardedMatrix* v;               // [kv_width, width]
    const ops::ShardedMatrix* attention_out;   // [width, q_width]
    const std::vector<float>* ffn_norm;        // [width]
    const ops::ShardedMatrix* gate;            // [feed_forward, width]
    const ops::ShardedMatrix* up;              // [feed_forward, width]
    const ops::ShardedMatrix* down;            // [width, feed_forward]
  };

  ops::Value attention(ops::Graph& graph, const Layer& layer, const LayerCache& cache, ops::Value x,
                       ops::Value angles, const StepInputs& inputs) const;
  ops::Value feed_forward(ops::Graph& graph, const Layer& layer, ops::Value x) const;

  ModelConfig config_;
  const ops::RowTable* embedding_;                    // [vocabulary, width]
  const std::vector<float>* rope_factors_ = nullptr;  // [rotary_dims / 2], llama 3 scaling
  std::vector<Layer> layers_;
  const std::vector<float>* output_norm_;  // [width]
  const ops::ShardedMatrix* output_;       // [vocabulary, width], may share the embedding's tensor
};

}  // namespace lockstep
