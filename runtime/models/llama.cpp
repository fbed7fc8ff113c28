// The forward pass, to be read beside the paper.
#include "runtime/models/llama.h"

#include <cmath>

namespace lockstep {
namespace {

// Norm weights are external values of the graph.
ops::Value constant(ops::Graph& graph, const std::vector<float>& values) {
  return graph.external("weight", ops::make_tensor({ops::DType::f32, {values.size()}},
                                                   const_cast<float*>(values.data())));
}

}  // namespace

LlamaModel::LlamaModel(const ModelConfig& config, WeightLoader& loader, unsigned workers)
    : config_(config) {
  const std::size_t width = config.width;
  // Cutting q, k and v between heads lets RoPE and the cache write follow without a barrier. With
  // more workers than key/value heads that would leave workers idle, and the planner spends a
  // barrier instead.
  const std::size_t head = config.kv_heads >= workers ? config.head_dim : 1;
  embedding_ = &loader.table("token_embd.weight", config.vocabulary, width);
  for (std::size_t i = 0; i < config.layers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    Layer layer;
    layer.attention_norm = &loader.vector(block + "attn_norm.weight", width);
    layer.q = &loader.matrix(block + "attn_q.weight", config.q_width(), width, head);
    layer.k = &loader.matrix(block + "attn_k.weight", config.kv_width(), width, head);
    layer.v = &loader.matrix(block + "attn_v.weight", config.kv_width(), width, head);
    layer.attention_out = &loader.matrix(block + "attn_output.weight", width, config.q_width());
    layer.ffn_norm = &loader.vector(block + "ffn_norm.weight", width);
    layer.gate = &loader.matrix(block + "ffn_gate.weight", config.feed_forward, width);
    layer.up = &loader.matrix(block + "ffn_up.weight", config.feed_forward, width);
    layer.down = &loader.matrix(block + "ffn_down.weight", width, config.feed_forward);
    layers_.push_back(layer);
  }
  if (loader.has("rope_freqs.weight")) {
    rope_factors_ = &loader.vector("rope_freqs.weight", config.rope.rotary_dims / 2);
    config_.rope.frequency_factors = *rope_factors_;
  }
  output_norm_ = &loader.vector("output_norm.weight", width);
  const bool tied = !loader.has("output.weight");
  output_ = &loader.matrix(tied ? "token_embd.weight" : "output.weight", config.vocabulary, width);
}

ops::Value LlamaModel::forward(ops::Graph& graph, const StepInputs& inputs,
                               std::span<const LayerCache> cache) const {
  graph.section("input");
  const ops::Value angles = ops::rope_angles(graph, inputs.positions, config_.rope);
  ops::Value x = ops::embed(graph, *embedding_, inputs.tokens);  // [n, width]
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    graph.section("layer " + std::to_string(i));
    x = attention(graph, layers_[i], cache[i], x, angles, inputs);
    x = feed_forward(graph, layers_[i], x);
  }
  graph.section("output");
  const std::size_t tokens = graph.type(inputs.tokens).shape.elements();
  const std::size_t wanted = graph.type(inputs.logit_rows).shape.elements();
  if (wanted == 0) return x;  // a prefill chunk: the cache is all that counts
  if (wanted != tokens) {
    x = ops::gather_rows(graph, x, inputs.logit_rows);  // [m, width]
  }
  x = ops::rms_norm(graph, x, constant(graph, *output_norm_), config_.norm_epsilon);
  return ops::matmul(graph, x, *output_);  // [m, vocabulary]
}

ops::Value LlamaModel::attention(ops::Graph& graph, const Layer& layer, const LayerCache& cache,
                                 ops::Value x, ops::Value angles, const StepInputs& inputs) const {
  const ops::Value normed =
      ops::rms_norm(graph, x, constant(graph, *layer.attention_norm), config_.norm_epsilon);
  ops::Value q = ops::matmul(graph, normed, *layer.q);  // [n, heads * head_dim]
  ops::Value k = ops::matmul(graph, normed, *layer.k);  // [n, kv_heads * head_dim]
  ops::Value v = ops::matmul(graph, normed, *layer.v);  // [n, kv_heads * head_dim]
  q = ops::rope(graph, q, angles, config_.rope);
  k = ops::rope(graph, k, angles, config_.rope);
  // [kv_heads, blocks, positions of a block, head_dim]
  const ops::Value keys = ops::cache_write(graph, k, graph.external("keys", cache.keys),
                                           inputs.positions, inputs.slots, inputs.blocks);
  const ops::Value values = ops::cache_write(graph, v, graph.external("values", cache.values),
                                             inputs.positions, inputs.slots, inputs.blocks);
  const ops::AttentionParams params{
      .heads = config_.heads,
      .kv_heads = config_.kv_heads,
      .head_dim = config_.head_dim,
      .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))};
  const ops::Value mixed =
      ops::attention(graph, q, keys, values, inputs.positions, inputs.slots, params, inputs.blocks);
  return ops::add(graph, ops::matmul(graph, mixed, *layer.attention_out), x);  // [n, width]
}

ops::Value LlamaModel::feed_forward(ops::Graph& graph, const Layer& layer, ops::Value x) const {
  const ops::Value normed =
      ops::rms_norm(graph, x, constant(graph, *layer.ffn_norm), config_.norm_epsilon);
  const ops::Value gate = ops::matmul(graph, normed, *layer.gate);  // [n, feed_forward]
  const ops::Value up = ops::matmul(graph, normed, *layer.up);      // [n, feed_forward]
  const ops::Value hidden = ops::swiglu(graph, gate, up);
  return ops::add(graph, ops::matmul(graph, hidden, *layer.down), x);  // [n, width]
}

}  // namespace lockstep
