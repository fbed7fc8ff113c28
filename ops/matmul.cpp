// y = x W^T with packed weights. Output features are divided among the workers, the same features
// for every token, so that a weight is read by one worker only, and by the one whose node holds it.
// A worker's slice may lie in any shards: the team that runs need not be the team that loaded.
#include <algorithm>
#include <memory>

#include "ops/check.h"
#include "ops/dense.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

DType activation_dtype(const quant::MatmulKernel& kernel) noexcept {
  const quant::Format activation = quant::traits(kernel.format).activation;
  if (activation == quant::Format::q8_0) return DType::act_q8_0;
  return activation == quant::Format::q8_k ? DType::act_q8_k : DType::f32;
}

// A chunk has this many rows at least, and as many as make up for being handed out: this many bytes
// of weights for one token, which is some microseconds.
constexpr std::size_t kChunkRows = 16;
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kChunkTokens = 8;
class Matmul final : public Op {
 public:
  explicit Matmul(const ShardedMatrix& matrix) : matrix_(matrix) {}

  std::string_view name() const noexcept override { return "matmul"; }
  std::string detail() const override {
    return matrix_.name + " " + std::string(matrix_.kernel->name);
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const DType dtype = activation_dtype(*matrix_.kernel);
    if (x.dtype != dtype || x.shape.rank() != 2 || x.shape.columns() != matrix_.columns) {
      shape_error("matmul", "x", x,
                  std::string(name_of(dtype)) + " [tokens, " + std::to_string(matrix_.columns) +
                      "] for " + matrix_.name + " " +
                      to_string(Shape{matrix_.rows, matrix_.columns}));
    }
    return {DType::f32, {x.shape[0], matrix_.rows}};
  }

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(matrix_.rows, matrix_.align);
  }
  bool accepts(const Partition& other) const override {
    return is_columns(other, matrix_.rows, matrix_.kernel->panel_rows);
  }
  Reach reach(std::size_t) const override { return Reach::all; }
  std::size_t weight_bytes() const noexcept override { return matrix_.bytes(); }
  // Dense kernels lay many tokens out anew in every call.
  std::size_t chunk_units(const TensorType& output) const noexcept override {
    const std::size_t tokens = output.shape[0];
    const bool dense = activation_dtype(*matrix_.kernel) == DType::f32;
    if (dense && tokens > kDenseFewTokens) return 0;
    const std::size_t row_bytes = matrix_.bytes() / matrix_.rows + 1;
    return std::max(kChunkRows, kChunkBytes / (row_bytes * std::min(tokens, kChunkTokens)));
  }

  void run(const Io& io) const noexcept override {
    const Tensor& x = io.inputs[0];
    const Slice mine = io.part;
    const quant::MatmulKernel& kernel = *matrix_.kernel;
    const std::size_t panel_bytes = matrix_.panel_bytes();
    for (const ShardedMatrix::Shard& shard : matrix_.shards) {
      const Slice part{std::max(mine.begin, shard.rows.begin), std::min(mine.end, shard.rows.end)};
      if (part.empty()) continue;
      // Both edges are multiples of the panel, so whole panels lie before this part of the shard.
      const std::size_t panels = (part.begin - shard.rows.begin) / kernel.panel_rows;
      kernel.run({.panels = shard.panels + panels * panel_bytes,
                  .rows = part.size(),
                  .k = matrix_.columns,
                  .activations = x.data,
                  .activation_stride = x.row_stride,
                  .tokens = io.output.rows(),
                  .y = io.output.row<float>(0) + part.begin,
                  .y_stride = io.output.row_stride / sizeof(float),
                  .side = matrix_.side});
    }
  }

 private:
  const ShardedMatrix& matrix_;
};

// The shards must tile the rows in order, from panel edge to panel edge.
void check_matrix(const ShardedMatrix& matrix) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError("matmul: " + matrix.name + " " +
                     to_string(Shape{matrix.rows, matrix.columns}) + " " + what);
  };
  if (matrix.kernel == nullptr) fail("has no kernel");
  const std::size_t panel_rows = matrix.kernel->panel_rows;
  const quant::FormatTraits& format = quant::traits(matrix.kernel->format);
  const std::size_t block = format.block_values;
  if (format.side != nullptr && matrix.side == nullptr) fail("comes without its side data");
  if (matrix.rows == 0 || matrix.columns == 0) fail("is empty");
  if (matrix.columns % block != 0)
    fail("has rows that are not whole blocks of " + std::to_string(block));
  if (matrix.align == 0 || matrix.align % panel_rows != 0) {
    fail("has alignment " + std::to_string(matrix.align) + ", expected a multiple of " +
         std::to_string(panel_rows));
  }
  std::size_t end = 0;
  for (const ShardedMatrix::Shard& shard : matrix.shards) {
    if (shard.rows.empty()) continue;
    if (shard.rows.begin != end || end % panel_rows != 0) {
      fail("has a shard at row " + std::to_string(shard.rows.begin) + ", expected it at " +
           std::to_string(end) + " and at a multiple of " + std::to_string(panel_rows));
    }
    end = shard.rows.end;
  }
  if (end != matrix.rows) fail("has shards for " + std::to_string(end) + " rows");
}

}  // namespace

Value matmul(Graph& graph, Value x, const ShardedMatrix& matrix) {
  check_matrix(matrix);
  const TensorType& type = graph.type(x);
  const bool matches = type.shape.rank() == 2 && type.shape.columns() == matrix.columns;
  const quant::Format activation = quant::traits(matrix.kernel->format).activation;
  if (matches && type.dtype == DType::f32) {
    // Ends the life of `type`: the observer appends values.
    if (graph.matmul_observer()) graph.matmul_observer()(x, matrix);
    if (activation != quant::Format::f32) x = quantize(graph, x, activation);
  }
  return graph.add(std::make_unique<Matmul>(matrix), {x});
}

}  // namespace lockstep::ops
