// Causal attention over a cache. Every query (one head of one token) has a recurrence of its own:
// pieces of kAttentionPiece positions, each folded into a running maximum, sum and weighted value
// (the online form of softmax). The order is a function of the token's position alone, hence so are
// the bits.
//
// What is shared is memory traffic and registers. The queries of a worker's slice that read the
// same head of the same slot go through the cache together, up to kBlock of them: neighbouring
// tokens of a prompt, and the heads that share one head of keys and values. A stretch of kStretch
// positions is widened to f32 once and meets all of them. Since no query notices the others, a
// slice may begin and end anywhere.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "ops/cache_blocks.h"
#include "ops/check.h"
#include "ops/ops.h"

namespace lockstep::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 64;
constexpr std::size_t kStretch = kAttentionStretch;
// Rows that transpose16() and dot_tile() take at once.
constexpr std::size_t kTile = 16;
// With fewer queries, turning the keys around costs more than adding across lanes.
constexpr std::size_t kTileQueries = 4;
static_assert(kAttentionPiece % kStretch == 0 && kStretch % kTile == 0);

// Keys or values of one head in one slot.
struct CacheView {
  const Tensor& cache;
  CacheBlocks blocks;
  std::size_t head = 0;
  std::size_t slot = 0;

  DType dtype() const noexcept { return cache.type.dtype; }
  std::size_t stride() const noexcept { return cache.row_stride; }  // bytes to the next position
  // Those up to the end of the stretch that the position is in follow it in memory.
  const std::byte* at(std::size_t position) const noexcept {
    return cache.row<const std::byte>(blocks.row(head, slot, position));
  }
};

// f32 rows, `stride` values apart.
struct Rows {
  const float* first = nullptr;
  std::size_t stride = 0;
};

// Queries that read the same keys and values: positions first up to length.
struct Block {
  std::size_t queries = 0;
  const float* q[kBlock];
  float* y[kBlock];
  std::size_t first[kBlock];
  std::size_t length[kBlock];
  float max[kBlock];
  float sum[kBlock];

  std::size_t longest() const noexcept { return *std::max_element(length, length + queries); }
  std::size_t earliest() const noexcept { return *std::min_element(first, first + queries); }
  // How many of `count` positions from `begin` lie up to the last that query i sees; 0 also if all
  // of them lie before its first.
  std::size_t seen(std::size_t i, std::size_t begin, std::size_t count) const noexcept {
    return length[i] <= begin || first[i] >= begin + count ? 0 : std::min(count, length[i] - begin);
  }
  // How many positions from `begin` lie before the first that query i sees.
  std::size_t skipped(std::size_t i, std::size_t begin) const noexcept {
    return first[i] - std::min(first[i], begin);
  }
};

struct Scratch {
  float* scores;   // [kBlock, kAttentionPiece]
  float* wide;     // [kStretch, head_dim]
  float* columns;  // [head_dim, kTile]

  static std::size_t floats(std::size_t head_dim) noexcept {
    return kBlock * kAttentionPiece + (kStretch + kTile) * head_dim;
  }
  Scratch(std::byte* at, std::size_t head_dim) noexcept
      : scores(reinterpret_cast<float*>(at)),
        wide(scores + kBlock * kAttentionPiece),
        columns(wide + kStretch * head_dim) {}
  float* of(std::size_t query) const noexcept { return scores + query * kAttentionPiece; }
};

bool is_cache(const TensorType& type, const AttentionParams& params) noexcept {
  return (type.dtype == DType::f32 || type.dtype == DType::f16 || type.dtype == DType::q8_0) &&
         type.shape.rank() == 4 && type.shape[0] == params.kv_heads &&
         type.shape[3] == params.head_dim;
}

class Attention final : public Op {
 public:
  Attention(const quant::RowKernels& kernels, std::size_t tokens, const AttentionParams& params)
      : kernels_(kernels), tokens_(tokens), params_(params) {}

  std::string_view name() const noexcept override { return "attention"; }
  std::string detail() const override {
    return std::to_string(params_.heads) + " heads of " + std::to_string(params_.head_dim) +
           ", kv " + std::to_string(params_.kv_heads) +
           (params_.window == 0 ? "" : ", window " + std::to_string(params_.window));
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& q = inputs[0];
    const TensorType& keys = inputs[1];
    if (params_.heads == 0 || params_.kv_heads == 0 || params_.head_dim == 0 ||
        params_.heads % params_.kv_heads != 0) {
      throw ShapeError("attention: heads are " + detail() + ", expected kv to divide them");
    }
    expect_type("attention", "q", q,
                {DType::f32, {q.shape.rows(), params_.heads * params_.head_dim}});
    if (!is_cache(keys, params_)) {
      shape_error("attention", "k_cache", keys,
                  "f32, f16 or q8_0 [" + std::to_string(params_.kv_heads) + ", slots, context, " +
                      std::to_string(params_.head_dim) + "]");
    }
    if (keys.dtype == DType::q8_0 && params_.head_dim % kCacheBlock != 0) {
      shape_error("attention", "k_cache", keys,
                  "f32 or f16, since heads of " + std::to_string(params_.head_dim) +
                      " values are not blocks of " + std::to_string(kCacheBlock));
    }
    expect_type("attention", "v_cache", inputs[2], keys);
    expect_type("attention", "positions", inputs[3], {DType::i32, {q.shape[0]}});
    expect_type("attention", "slots", inputs[4], {DType::i32, {q.shape[0]}});
    if (inputs.size() > 5) {
      expect_block_table("attention", inputs[5]);
      if (keys.shape[2] % kStretch != 0) {
        shape_error("attention", "k_cache", keys,
                    "blocks of a multiple of " + std::to_string(kStretch) + " positions");
      }
    }
    return q;
  }

  // A unit is a query. They are in the order kv head, token, head of the group, so that a slice
  // holds as many queries as possible of one head of the cache.
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return {.kind = Partition::Kind::units, .extent = params_.heads * tokens_, .align = 1};
  }
  Reach reach(std::size_t) const override { return Reach::all; }
  // Fewer queries would not share their head of the cache.
  std::size_t chunk_units(const TensorType&) const noexcept override { return kBlock; }
  std::size_t scratch_bytes(std::span<const TensorType>, const TensorType&,
                            unsigned) const override {
    return Scratch::floats(params_.head_dim) * sizeof(float);
  }

  void run(const Io& io) const noexcept override {
    const auto* slots = io.inputs[4].row<const std::int32_t>(0);
    const Scratch scratch(io.scratch, params_.head_dim);
    const std::size_t group = params_.heads / params_.kv_heads;
    const Slice mine = io.part;
    for (std::size_t unit = mine.begin; unit < mine.end;) {
      const std::size_t kv_head = unit / (group * tokens_);
      const std::int32_t slot = slots[unit / group % tokens_];
      Block block;
      do {
        append(io, unit / group % tokens_, kv_head * group + unit % group, block);
        ++unit;
      } while (unit < mine.end && block.queries < kBlock && unit / (group * tokens_) == kv_head &&
               slots[unit / group % tokens_] == slot);
      attend(view(io, 1, static_cast<std::size_t>(slot), kv_head),
             view(io, 2, static_cast<std::size_t>(slot), kv_head), scratch, block);
    }
  }

 private:
  static CacheView view(const Io& io, std::size_t input, std::size_t slot,
                        std::size_t kv_head) noexcept {
    const Tensor& cache = io.inputs[input];
    const Tensor* const table = io.inputs.size() > 5 ? &io.inputs[5] : nullptr;
    return {cache, CacheBlocks(cache.type, table), kv_head, slot};
  }

  void append(const Io& io, std::size_t token, std::size_t head, Block& block) const noexcept {
    const std::size_t column = head * params_.head_dim;
    const std::size_t i = block.queries++;
    block.q[i] = io.inputs[0].row<const float>(token) + column;
    block.y[i] = io.output.row<float>(token) + column;
    block.length[i] = static_cast<std::size_t>(io.inputs[3].row<const std::int32_t>(0)[token]) + 1;
    const std::size_t window = params_.window != 0 ? params_.window : block.length[i];
    block.first[i] = block.length[i] - std::min(block.length[i], window);
    block.max[i] = -kInfinity;
    block.sum[i] = 0.0f;
    std::memset(block.y[i], 0, params_.head_dim * sizeof(float));
  }

  // y = softmax(scale * q K^T) V over positions [first, length), for every query.
  void attend(const CacheView& keys, const CacheView& values, const Scratch& scratch,
              Block& block) const noexcept {
    const std::size_t longest = block.longest();
    // Pieces begin at the same positions for every query, whoever it is read with.
    std::size_t begin = block.earliest() / kAttentionPiece * kAttentionPiece;
    for (; begin < longest; begin += kAttentionPiece) {
      const std::size_t count = std::min(kAttentionPiece, longest - begin);
      if (params_.head_dim % kTile == 0 && block.queries >= kTileQueries) {
        score_tiles(keys, begin, count, scratch, block);
      } else {
        score_rows(keys, begin, count, scratch, block);
      }
      for (std::size_t i = 0; i < block.queries; ++i) {
        const std::size_t seen = block.seen(i, begin, count);
        if (seen == 0) continue;
        if (params_.soft_cap > 0.0f) {
          kernels_.soft_cap(params_.soft_cap, scratch.of(i), scratch.of(i), seen);
        }
        std::fill_n(scratch.of(i), block.skipped(i, begin), -kInfinity);
        weigh(seen, scratch.of(i), block, i);
      }
      accumulate(values, begin, count, scratch, block);
    }
    for (std::size_t i = 0; i < block.queries; ++i) {
      kernels_.scale(1.0f / block.sum[i], block.y[i], block.y[i], params_.head_dim);
    }
  }

  // Scores become weights relative to the running maximum.
  void weigh(std::size_t count, float* scores, Block& block, std::size_t i) const noexcept {
    const float piece_max = kernels_.max(scores, count);
    if (piece_max > block.max[i]) {
      if (block.max[i] > -kInfinity) {  // what was gathered so far was relative to a smaller one
        float correction = block.max[i] - piece_max;
        kernels_.exp(&correction, &correction, 1);
        block.sum[i] *= correction;
        kernels_.scale(correction, block.y[i], block.y[i], params_.head_dim);
      }
      block.max[i] = piece_max;
    }
    block.sum[i] += kernels_.exp_sum(scores, block.max[i], count);
  }

  // Positions [begin, begin + count), which lie in one stretch, in f32.
  Rows widen(const CacheView& view, std::size_t begin, std::size_t count,
             float* wide) const noexcept {
    const std::size_t dim = params_.head_dim;
    const std::byte* from = view.at(begin);
    if (view.dtype() == DType::f32) {
      return {reinterpret_cast<const float*>(from), view.stride() / sizeof(float)};
    }
    for (std::size_t j = 0; j < count; ++j, from += view.stride()) {
      if (view.dtype() == DType::f16) {
        kernels_.f16_to_f32(reinterpret_cast<const std::uint16_t*>(from), wide + j * dim, dim);
      } else {
        kernels_.q8_0_to_f32(from, wide + j * dim, dim);
      }
    }
    return {wide, dim};
  }

  void score_tiles(const CacheView& keys, std::size_t begin, std::size_t count,
                   const Scratch& scratch, const Block& block) const noexcept {
    const std::size_t dim = params_.head_dim;
    for (std::size_t at = 0; at < count; at += kTile) {
      const std::size_t there = std::min(kTile, count - at);
      Rows rows = widen(keys, begin + at, there, scratch.wide);
      if (there < kTile) {  // there may be nothing to read behind the last position
        for (std::size_t j = 0; j < there && rows.first != scratch.wide; ++j) {
          std::memcpy(scratch.wide + j * dim, rows.first + j * rows.stride, dim * sizeof(float));
        }
        std::memset(scratch.wide + there * dim, 0, (kTile - there) * dim * sizeof(float));
        rows = {scratch.wide, dim};
      }
      kernels_.transpose16(rows.first, rows.stride, dim, scratch.columns);
      std::size_t first = 0;
      while (block.length[first] <= begin + at) ++first;  // the longest goes further
      kernels_.dot_tile(block.q + first, block.queries - first, scratch.columns, dim, params_.scale,
                        scratch.of(first) + at, kAttentionPiece);
    }
  }

  void score_rows(const CacheView& keys, std::size_t begin, std::size_t count,
                  const Scratch& scratch, const Block& block) const noexcept {
    const std::size_t dim = params_.head_dim;
    for (std::size_t at = 0; at < count; at += kStretch) {
      const std::size_t there = std::min(kStretch, count - at);
      const auto* halves = reinterpret_cast<const std::uint16_t*>(keys.at(begin + at));
      const bool half = keys.dtype() == DType::f16;
      const Rows rows = half ? Rows{} : widen(keys, begin + at, there, scratch.wide);
      for (std::size_t i = 0; i < block.queries; ++i) {
        const std::size_t seen = block.seen(i, begin + at, there);
        float* const scores = scratch.of(i) + at;
        if (half) {
          kernels_.dot_rows_f16(block.q[i], halves, keys.stride() / sizeof *halves, seen, dim,
                                scores);
        } else {
          kernels_.dot_rows_f32(block.q[i], rows.first, rows.stride, seen, dim, scores);
        }
        kernels_.scale(params_.scale, scores, scores, seen);
      }
    }
  }

  void accumulate(const CacheView& values, std::size_t begin, std::size_t count,
                  const Scratch& scratch, const Block& block) const noexcept {
    const std::size_t dim = params_.head_dim;
    const bool half = values.dtype() == DType::f16 && block.queries < kTileQueries;
    for (std::size_t at = 0; at < count; at += kStretch) {
      const std::size_t there = std::min(kStretch, count - at);
      const auto* halves = reinterpret_cast<const std::uint16_t*>(values.at(begin + at));
      const Rows rows = half ? Rows{} : widen(values, begin + at, there, scratch.wide);
      for (std::size_t i = 0; i < block.queries;) {
        // Values before the window are not multiplied by 0 but left out: they may be NaN.
        const std::size_t skipped = block.skipped(i, begin + at);
        const std::size_t seen = block.seen(i, begin + at, there);
        const std::size_t used = seen - std::min(seen, skipped);
        const float* const weights = scratch.of(i) + at + skipped;
        if (half) {
          const std::size_t stride = values.stride() / sizeof *halves;
          kernels_.axpy_rows_f16(weights, halves + skipped * stride, stride, used, dim,
                                 block.y[i++]);
          continue;
        }
        const float* const first = rows.first + skipped * rows.stride;
        std::size_t alike = 1;
        if (dim % kTile == 0) {
          while (i + alike < block.queries && block.seen(i + alike, begin + at, there) == seen &&
                 block.skipped(i + alike, begin + at) == skipped) {
            ++alike;
          }
          kernels_.axpy_tile(weights, kAttentionPiece, alike, first, rows.stride, used, dim,
                             block.y + i);
        } else {
          kernels_.axpy_rows_f32(weights, first, rows.stride, used, dim, block.y[i]);
        }
        i += alike;
      }
    }
  }

  const quant::RowKernels& kernels_;
  std::size_t tokens_;
  AttentionParams params_;
};

}  // namespace

Value attention(Graph& graph, Value q, Value k_cache, Value v_cache, Value positions, Value slots,
                const AttentionParams& params, std::optional<Value> blocks) {
  std::vector<Value> inputs{q, k_cache, v_cache, positions, slots};
  if (blocks) inputs.push_back(*blocks);
  return graph.add(std::make_unique<Attention>(graph.rows(), graph.type(q).shape.rows(), params),
                   std::move(inputs));
}

}  // namespace lockstep::ops
