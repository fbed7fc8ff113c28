// New keys or values into their places in a cache, in place: the result is the cache, so that
// whoever reads the result runs after the write. It follows the producer of x, by features or by
// tokens, since each element goes to a place of its own.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/cache_blocks.h"
#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

// Values per cache line of an f16 cache: a cut here keeps two workers off one line. It also keeps
// the blocks of a q8_0 cache whole.
constexpr std::size_t kLineValues = 32;
static_assert(kLineValues % kCacheBlock == 0);

class CacheWrite final : public Op {
 public:
  CacheWrite(const quant::RowKernels& kernels, const Shape& x, DType cache)
      : kernels_(kernels),
        tokens_(x.rows()),
        width_(x.columns()),
        align_(cache == DType::q8_0 ? kCacheBlock : 1) {}

  std::string_view name() const noexcept override { return "cache_write"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const TensorType& cache = inputs[1];
    expect_matrix("cache_write", "x", x, DType::f32);
    const bool known = cache.dtype == DType::f32 || cache.dtype == DType::f16 ||
                       (cache.dtype == DType::q8_0 && cache.shape.columns() % kCacheBlock == 0);
    if (!known || cache.shape.rank() != 4 || cache.shape[0] * cache.shape[3] != x.shape[1]) {
      shape_error("cache_write", "cache", cache,
                  "f32, f16 or (in whole blocks) q8_0 [heads, slots, context, head_dim] with " +
                      std::to_string(x.shape[1]) + " values in all heads");
    }
    expect_type("cache_write", "positions", inputs[2], {DType::i32, {x.shape[0]}});
    expect_type("cache_write", "slots", inputs[3], {DType::i32, {x.shape[0]}});
    if (inputs.size() > 4) expect_block_table("cache_write", inputs[4]);
    return cache;
  }
  int alias() const noexcept override { return 1; }

  // Rows are the tokens of x, columns the features that x and the cache share.
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(width_, kLineValues);
  }
  bool accepts(const Partition& other) const override {
    return is_rows(other, tokens_) || is_columns(other, width_, align_);
  }
  Reach reach(std::size_t input) const override { return input == 0 ? Reach::own : Reach::all; }

  void run(const Io& io) const noexcept override {
    const Tensor& x = io.inputs[0];
    const auto* positions = io.inputs[2].row<const std::int32_t>(0);
    const auto* slots = io.inputs[3].row<const std::int32_t>(0);
    const std::size_t head_dim = io.output.type.shape[3];
    const CacheBlocks blocks(io.output.type, io.inputs.size() > 4 ? &io.inputs[4] : nullptr);
    const Region mine = region(io, tokens_, width_);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto slot = static_cast<std::size_t>(slots[i]);
      const auto position = static_cast<std::size_t>(positions[i]);
      // Head after head; the first and the last may be cut.
      for (std::size_t at = mine.columns.begin; at < mine.columns.end;) {
        const std::size_t head = at / head_dim;
        const std::size_t end = std::min(mine.columns.end, (head + 1) * head_dim);
        store(x.row<const float>(i) + at, io.output, blocks.row(head, slot, position),
              at - head * head_dim, end - at);
        at = end;
      }
    }
  }

 private:
  void store(const float* from, const Tensor& cache, std::size_t row, std::size_t first,
             std::size_t count) const noexcept {
    switch (cache.type.dtype) {
      case DType::f16:
        kernels_.f32_to_f16(from, cache.row<std::uint16_t>(row) + first, count);
        break;
      case DType::q8_0:
        q8_0_.encode(from, nullptr,
                     cache.row<std::byte>(row) + quant::bytes_of(q8_0_.format, first), count);
        break;
      default:
        std::memcpy(cache.row<float>(row) + first, from, count * sizeof(float));
        break;
    }
  }

  const quant::RowKernels& kernels_;
  std::size_t tokens_;
  std::size_t width_;
  std::size_t align_;  // where a row may be cut
  const quant::FormatTraits& q8_0_ = quant::traits(quant::Format::q8_0);
};

}  // namespace

Value cache_write(Graph& graph, Value x, Value cache, Value positions, Value slots,
                  std::optional<Value> blocks) {
  std::vector<Value> inputs{x, cache, positions, slots};
  if (blocks) inputs.push_back(*blocks);
  return graph.add(
      std::make_unique<CacheWrite>(graph.rows(), graph.type(x).shape, graph.type(cache).dtype),
      std::move(inputs));
}

}  // namespace lockstep::ops
