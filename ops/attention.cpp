// Causal attention over a cache. The unit of work is one head of one token, so a worker's share
// never depends on how long the cache is, and every unit is computed by one worker in one order:
// pieces of kAttentionPiece positions, each folded into a running maximum, sum and weighted value
// (the online form of softmax). The order is a function of the token's position alone, hence so are
// the bits.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"

namespace lockstep::ops {
namespace {

// Keys or values of one head in one slot, position by position.
struct CacheView {
  const std::byte* first = nullptr;  // position 0
  std::size_t stride = 0;            // bytes to the next position
  bool half = false;

  template <class T>
  const T* at(std::size_t position) const noexcept {
    return reinterpret_cast<const T*>(first + position * stride);
  }
  // From one position to the next.
  template <class T>
  std::size_t elements() const noexcept {
    return stride / sizeof(T);
  }
};

class Attention final : public Op {
 public:
  Attention(const quant::RowKernels& kernels, std::size_t tokens, const AttentionParams& params)
      : kernels_(kernels), tokens_(tokens), params_(params) {}

  std::string_view name() const noexcept override { return "attention"; }
  std::string detail() const override {
    return std::to_string(params_.heads) + " heads of " + std::to_string(params_.head_dim) +
           ", kv " + std::to_string(params_.kv_heads);
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& q = inputs[0];
    const TensorType& keys = inputs[1];
    if (params_.heads == 0 || params_.kv_heads == 0 || params_.head_dim == 0 ||
        params_.heads % params_.kv_heads != 0) {
      throw ShapeError("attention: heads are " + detail() + ", expected kv to divide them");
    }
    const std::size_t width = params_.kv_heads * params_.head_dim;
    expect_type("attention", "q", q,
                {DType::f32, {q.shape.rows(), params_.heads * params_.head_dim}});
    const bool floats = keys.dtype == DType::f32 || keys.dtype == DType::f16;
    if (!floats || keys.shape.rank() != 3 || keys.shape[2] != width) {
      shape_error("attention", "k_cache", keys,
                  "f32 or f16 [slots, context, " + std::to_string(width) + "]");
    }
    expect_type("attention", "v_cache", inputs[2], keys);
    expect_type("attention", "positions", inputs[3], {DType::i32, {q.shape[0]}});
    expect_type("attention", "slots", inputs[4], {DType::i32, {q.shape[0]}});
    return q;
  }

  // Head-major: neighbouring units share a head, hence the cache lines of its keys and values.
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return {.kind = Partition::Kind::units, .extent = params_.heads * tokens_, .align = 1};
  }
  Reach reach(std::size_t) const override { return Reach::all; }
  std::size_t scratch_bytes(std::span<const TensorType>, const TensorType&,
                            unsigned) const override {
    return kAttentionPiece * sizeof(float);
  }

  void run(const Io& io, const Lane& lane) const noexcept override {
    const auto* positions = io.inputs[3].row<const std::int32_t>(0);
    const auto* slots = io.inputs[4].row<const std::int32_t>(0);
    const Slice mine = io.partition.slice(lane);
    for (std::size_t unit = mine.begin; unit < mine.end; ++unit) {
      const std::size_t head = unit / tokens_;
      const std::size_t token = unit % tokens_;
      const std::size_t kv_head = head / (params_.heads / params_.kv_heads);
      const auto slot = static_cast<std::size_t>(slots[token]);
      const std::size_t column = head * params_.head_dim;
      attend(io.inputs[0].row<const float>(token) + column, view(io.inputs[1], slot, kv_head),
             view(io.inputs[2], slot, kv_head), static_cast<std::size_t>(positions[token]) + 1,
             reinterpret_cast<float*>(io.scratch), io.output.row<float>(token) + column);
    }
  }

 private:
  CacheView view(const Tensor& cache, std::size_t slot, std::size_t kv_head) const noexcept {
    const bool half = cache.type.dtype == DType::f16;
    const std::size_t element = half ? sizeof(std::uint16_t) : sizeof(float);
    return {cache.row<const std::byte>(slot * cache.type.shape[1]) +
                kv_head * params_.head_dim * element,
            cache.row_stride, half};
  }

  // y = softmax(scale * q K^T) V over positions [0, length).
  void attend(const float* q, const CacheView& keys, const CacheView& values, std::size_t length,
              float* scores, float* y) const noexcept {
    const std::size_t dim = params_.head_dim;
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;
    std::memset(y, 0, dim * sizeof(float));
    for (std::size_t begin = 0; begin < length; begin += kAttentionPiece) {
      const std::size_t count = std::min(kAttentionPiece, length - begin);
      score(q, keys, begin, count, scores);
      const float piece_max = kernels_.max(scores, count);
      if (piece_max > max) {
        if (begin > 0) {  // what was gathered so far was relative to a smaller maximum
          float correction = max - piece_max;
          kernels_.exp(&correction, &correction, 1);
          sum *= correction;
          kernels_.scale(correction, y, y, dim);
        }
        max = piece_max;
      }
      sum += kernels_.exp_sum(scores, max, count);
      accumulate(values, begin, count, scores, y);
    }
    kernels_.scale(1.0f / sum, y, y, dim);
  }

  void score(const float* q, const CacheView& keys, std::size_t begin, std::size_t count,
             float* scores) const noexcept {
    const std::size_t dim = params_.head_dim;
    if (keys.half) {
      kernels_.dot_rows_f16(q, keys.at<std::uint16_t>(begin), keys.elements<std::uint16_t>(), count,
                            dim, scores);
    } else {
      kernels_.dot_rows_f32(q, keys.at<float>(begin), keys.elements<float>(), count, dim, scores);
    }
    kernels_.scale(params_.scale, scores, scores, count);
  }

  void accumulate(const CacheView& values, std::size_t begin, std::size_t count,
                  const float* weights, float* y) const noexcept {
    const std::size_t dim = params_.head_dim;
    if (values.half) {
      kernels_.axpy_rows_f16(weights, values.at<std::uint16_t>(begin),
                             values.elements<std::uint16_t>(), count, dim, y);
    } else {
      kernels_.axpy_rows_f32(weights, values.at<float>(begin), values.elements<float>(), count, dim,
                             y);
    }
  }

  const quant::RowKernels& kernels_;
  std::size_t tokens_;
  AttentionParams params_;
};

}  // namespace

Value attention(Graph& graph, Value q, Value k_cache, Value v_cache, Value positions, Value slots,
                const AttentionParams& params) {
  return graph.add(std::make_unique<Attention>(graph.rows(), graph.type(q).shape.rows(), params),
                   {q, k_cache, v_cache, positions, slots});
}

}  // namespace lockstep::ops
