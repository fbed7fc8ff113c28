// The operators: functions that append a node to a graph. Shapes are [slowest, ..., contiguous];
// `n` is the number of tokens. Every function throws ShapeError with names and extents on a
// mismatch. One .cpp per op. All computing values are f32 unless said otherwise.
#pragma once

#include <cstddef>
#include <span>

#include "ops/graph.h"
#include "ops/matrix.h"

namespace lockstep::ops {

// ids i32 [n] -> [n, table.columns]. Ids must lie in [0, table.rows): the caller checks.
Value embed(Graph& graph, const RowTable& table, Value ids);

// x [n, k] -> quantized activations [n, k]; `activation` is q8_0 or q8_k.
Value quantize(Graph& graph, Value x, quant::Format activation);

// x [n, k] (f32, or quantized as the kernel wants it) times W [m, k] -> [n, m]. An f32 x is
// quantized first where the kernel needs it; the quantized form is shared by all matmuls of the
// same x. The matrix must outlive the graph.
Value matmul(Graph& graph, Value x, const ShardedMatrix& matrix);

// y = x / sqrt(mean(x^2) + epsilon) * weight; x [n, k], weight f32 [k] external.
Value rms_norm(Graph& graph, Value x, Value weight, float epsilon);

// Elementwise; x and y of one shape, or y [k] broadcast over the rows of x [n, k].
Value add(Graph& graph, Value x, Value y);
Value mul(Graph& graph, Value x, Value y);
Value scale(Graph& graph, Value x, float factor);
Value silu(Graph& graph, Value x);
Value gelu(Graph& graph, Value x);
// silu(gate) * up
Value swiglu(Graph& graph, Value gate, Value up);

// Softmax over the last dimension. A row of -inf gives zeros.
Value softmax(Graph& graph, Value x);

enum class RopePairing : unsigned char {
  adjacent,  // (0,1), (2,3), ...: the llama architecture in GGUF
  halves,    // (0, r/2), (1, r/2 + 1), ...: NEOX
};
struct RopeParams {
  std::size_t head_dim = 0;
  std::size_t rotary_dims = 0;  // <= head_dim, even; the rest passes through
  RopePairing pairing = RopePairing::adjacent;
  double base = 10000.0;
  double position_scale = 1.0;  // linear scaling: the angle uses position * position_scale
  std::span<const float> frequency_factors{};  // rotary_dims / 2 divisors, or empty; copied
};
// Cosines and sines for a step, made once and shared by all layers: positions i32 [n] ->
// [n, rotary_dims], row i = cos of all pairs, then sin of all pairs. The angle of pair p is
// position * position_scale * base^(-2p / rotary_dims) / factor[p], in f64, rounded to f32 at the
// end. Replicable.
Value rope_angles(Graph& graph, Value positions, const RopeParams& params);
// Rotates x [n, heads * head_dim] by angles [n, rotary_dims] (read freely: reach all) -> same
// shape.
Value rope(Graph& graph, Value x, Value angles, const RopeParams& params);

// Writes row i of x [n, width] to cache[slots[i], positions[i], :]; cache f32, f16 or q8_0 (then
// width is a multiple of kCacheBlock) [slots, context, width]. The result is the cache: reading it
// orders after the write.
inline constexpr std::size_t kCacheBlock = 32;
Value cache_write(Graph& graph, Value x, Value cache, Value positions, Value slots);

struct AttentionParams {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;
  float scale = 1.0f;
};
// Causal attention of token i over cache[slots[i], 0..positions[i], :]. q [n, heads * head_dim],
// caches [slots, context, kv_heads * head_dim] -> [n, heads * head_dim]. The cache is read in
// pieces of kAttentionPiece positions, merged in order, so that the bits depend on nothing but the
// sequence.
inline constexpr std::size_t kAttentionPiece = 128;
Value attention(Graph& graph, Value q, Value k_cache, Value v_cache, Value positions, Value slots,
                const AttentionParams& params);

// x [n, k], rows i32 [m] -> [m, k]: picks rows of x. Indices must lie in [0, n): the caller checks.
Value gather_rows(Graph& graph, Value x, Value rows);

// x f32 [n, k] -> [1, k]: the sum of squares of each column over the tokens, added in f64 in their
// order and rounded to f32 once.
Value column_squares(Graph& graph, Value x);

// f32 <-> f16, or the same type (a contiguous copy).
Value cast(Graph& graph, Value x, DType dtype);

}  // namespace lockstep::ops
