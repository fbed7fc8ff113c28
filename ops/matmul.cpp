// y = x W^T with packed weights. Output features are divided among the workers, the same features
// for every token, so that a weight is read by one worker only, and by the one whose node holds it.
// A worker's slice may lie in any shards: the team that runs need not be the team that loaded.
#include <algorithm>
#include <memory>

#include "ops/check.h"
#include "ops/dense.h"
#include "ops/multiply.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

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
    const DType dtype = activation_dtype(matrix_);
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
    const bool dense = activation_dtype(matrix_) == DType::f32;
    if (dense && tokens > kDenseFewTokens) return 0;
    const std::size_t row_bytes = matrix_.bytes() / matrix_.rows + 1;
    return std::max(kChunkRows, kChunkBytes / (row_bytes * std::min(tokens, kChunkTokens)));
  }

  void run(const Io& io) const noexcept override {
    multiply(matrix_, io.part,
             {.activations = io.inputs[0].data,
              .activation_stride = io.inputs[0].row_stride,
              .tokens = io.output.rows(),
              .y = io.output.row<float>(0),
              .y_stride = io.output.row_stride / sizeof(float),
              .node = io.node});
  }

 private:
  const ShardedMatrix& matrix_;
};

}  // namespace

Value matmul(Graph& graph, Value x, const ShardedMatrix& matrix, MatmulHint hint) {
  check_matrix("matmul", matrix);
  if (hint == MatmulHint::hadamard) {
    if (matrix.rows != matrix.columns) {
      throw ShapeError("matmul: " + matrix.name + " " +
                       to_string(Shape{matrix.rows, matrix.columns}) +
                       " is no Hadamard matrix: it is not square");
    }
    return hadamard(graph, x, matrix.columns);
  }
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
