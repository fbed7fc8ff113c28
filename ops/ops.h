// The operators: functions that append a node to a graph. Shapes are [slowest, ..., contiguous];
// `n` is the number of tokens. Every function throws ShapeError with names and extents on a
// mismatch. One .cpp per op. All computing values are f32 unless said otherwise.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ops/graph.h"
#include "ops/matrix.h"

namespace lockstep::ops {

// ids i32 [n] -> [n, table.columns]. Ids must lie in [0, table.rows): the caller checks.
Value embed(Graph& graph, const RowTable& table, Value ids);

// x [n, k] -> quantized activations [n, k]; `activation` is q8_0 or q8_k.
Value quantize(Graph& graph, Value x, quant::Format activation);

enum class MatmulHint : unsigned char {
  none,
  hadamard,  // W is the orthonormal Hadamard matrix of hadamard(): nothing of it will be read
};
// x [n, k] (f32, or quantized as the kernel wants it) times W [m, k] -> [n, m]. An f32 x is
// quantized first where the kernel needs it; the quantized form is shared by all matmuls of the
// same x. The matrix must outlive the graph.
Value matmul(Graph& graph, Value x, const ShardedMatrix& matrix,
             MatmulHint hint = MatmulHint::none);
// Every block of `block` columns (a power of two, dividing k) of x [.., k] times the orthonormal
// Hadamard matrix H[i][j] = (-1)^popcount(i & j) / sqrt(block), as a fast Walsh-Hadamard transform.
Value hadamard(Graph& graph, Value x, std::size_t block);

// Mixtures of experts (Shazeer et al. 2017). Row i of x, which is [n, k], or [n, u, k] with an x
// for each choice, meets the matrices ids[i, 0 .. u), ids i32 [n, u] -> [n, u, m]. All experts are
// of one shape, kernel and alignment, and must outlive the graph. Ids must lie in [0, experts).
Value expert_matmul(Graph& graph, Value x, std::span<const ShardedMatrix> experts, Value ids);
// x [n, k] -> i32 [n, count]: the columns of the largest values, from the largest on, the lower
// column first among equals; NaN is the least.
Value top_k(Graph& graph, Value x, std::size_t count);
// x [n, k], ids i32 [n, u] -> [n, u]: x[i, ids[i, j]]. Ids must lie in [0, k): the caller checks.
Value gather_columns(Graph& graph, Value x, Value ids);
// x [n, u, k], weights [n, u] -> [n, k]: sum over j of weights[i, j] * x[i, j, :], in order of j.
Value weighted_sum(Graph& graph, Value x, Value weights);

// y = x / sqrt(mean(x^2) + epsilon) * weight; x [n, k], weight f32 [k] external.
Value rms_norm(Graph& graph, Value x, Value weight, float epsilon);
// y = (x - mean) / sqrt(variance + epsilon) * weight + bias; x [n, k], weight and bias f32 [k].
Value layer_norm(Graph& graph, Value x, Value weight, std::optional<Value> bias, float epsilon);

// Elementwise. y has the shape of x, or is broadcast: from the last dimension on its extents are
// those of x or 1, and it may have fewer dimensions ([k] or [n, 1] for x [n, k]).
Value add(Graph& graph, Value x, Value y);
Value mul(Graph& graph, Value x, Value y);
Value scale(Graph& graph, Value x, float factor);
Value exp(Graph& graph, Value x);
Value relu(Graph& graph, Value x);
Value sigmoid(Graph& graph, Value x);
Value tanh(Graph& graph, Value x);
Value silu(Graph& graph, Value x);  // x * sigmoid(x)
Value gelu(Graph& graph, Value x);  // in the tanh form
// silu(gate) * up and gelu(gate) * up, both of one shape
Value swiglu(Graph& graph, Value gate, Value up);
Value geglu(Graph& graph, Value gate, Value up);
// cap * tanh(x / cap), cap > 0
Value soft_cap(Graph& graph, Value x, float cap);

// Over the last dimension: x [.., k] -> [.., 1].
Value sum(Graph& graph, Value x);
Value mean(Graph& graph, Value x);
// x [n, k] -> i32 [n]: the column of the largest value, the lowest of equals. NaN is the least.
Value argmax(Graph& graph, Value x);

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
  // YaRN (Peng et al. 2023): pairs that turn more than `fast` times in the original context keep
  // their frequency, those below `slow` turns get position_scale, in between both are mixed, and
  // cosines and sines are multiplied by `magnitude`.
  struct Yarn {
    std::size_t original_context = 0;  // 0: no YaRN
    double fast = 32.0;
    double slow = 1.0;
    double extrapolation = 1.0;  // share of the unscaled frequency above `fast`
    double magnitude = 1.0;      // see yarn_magnitude()
  } yarn{};
};
// 0.1 ln(1 / position_scale) + 1 of the paper; 1 where positions are not compressed.
double yarn_magnitude(double position_scale) noexcept;
// The frequency factors of Llama 3.1: 1 for wavelengths below original_context / high, `factor`
// above original_context / low, in between interpolated. rotary_dims / 2 values.
std::vector<float> llama3_frequency_factors(std::size_t rotary_dims, double base, double factor,
                                            double low, double high, std::size_t original_context);
// Cosines and sines for a step, made once and shared by all layers: positions i32 [n] ->
// [n, rotary_dims], row i = cos of all pairs, then sin of all pairs. The angle of pair p is
// position * position_scale * base^(-2p / rotary_dims) / factor[p], in f64, rounded to f32 at the
// end. Replicable.
Value rope_angles(Graph& graph, Value positions, const RopeParams& params);
// Rotates x [n, heads * head_dim] by angles [n, rotary_dims] (read freely: reach all) -> same
// shape.
Value rope(Graph& graph, Value x, Value angles, const RopeParams& params);

// Writes head h of row i of x [n, heads * head_dim] to cache[h, slots[i], positions[i], :]; cache
// f32, f16 or q8_0 (then head_dim is a multiple of kCacheBlock) [heads, slots, context, head_dim].
// What a head holds lies together, so that it can lie in the memory of the NUMA node that reads it.
// The result is the cache: reading it orders after the write.
// With `blocks`, i32 [slots, blocks of a slot], the cache is [heads, blocks, block, head_dim], and
// position p of slot s lies in block blocks[s, p / block] at p % block (cache_blocks.h).
inline constexpr std::size_t kCacheBlock = 32;
Value cache_write(Graph& graph, Value x, Value cache, Value positions, Value slots,
                  std::optional<Value> blocks = std::nullopt);

struct AttentionParams {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;
  float scale = 1.0f;
  std::size_t window = 0;  // sees its own and the window - 1 positions before; 0: all
  float soft_cap = 0.0f;   // scores become cap * tanh(score / cap); 0: they stay
};
// Causal attention of token i over cache[:, slots[i], 0..positions[i], :]. q [n, heads * head_dim],
// caches [kv_heads, slots, context, head_dim] -> [n, heads * head_dim]. The cache is read in
// pieces of kAttentionPiece positions, merged in order, so that the bits depend on nothing but the
// sequence; with `blocks`, as for cache_write, they may also lie anywhere. Blocks then hold a
// multiple of kAttentionStretch positions.
inline constexpr std::size_t kAttentionPiece = 128;
inline constexpr std::size_t kAttentionStretch = 32;
Value attention(Graph& graph, Value q, Value k_cache, Value v_cache, Value positions, Value slots,
                const AttentionParams& params, std::optional<Value> blocks = std::nullopt);

// x [n, k], rows i32 [m] -> [m, k]: picks rows of x. Indices must lie in [0, n): the caller checks.
Value gather_rows(Graph& graph, Value x, Value rows);

// x f32 [n, k] -> [1, k]: the sum of squares of each column over the tokens, added in f64 in their
// order and rounded to f32 once.
Value column_squares(Graph& graph, Value x);

// f32 <-> f16, or the same type: a copy whose rows lie one behind the other.
Value cast(Graph& graph, Value x, DType dtype);

}  // namespace lockstep::ops
