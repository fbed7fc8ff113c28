// How large each input column of a matrix is over the tokens of a step: what an importance matrix
// is made of. One f64 accumulator per column takes the tokens in order, so the sums depend on the
// tokens alone: workers divide the columns, never a sum.
#include <algorithm>
#include <array>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

constexpr std::size_t kTile = 64;   // columns summed up together
constexpr std::size_t kAlign = 16;  // of a worker's columns: a cache line of results

class ColumnSquares final : public Op {
 public:
  std::string_view name() const noexcept override { return "column_squares"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_matrix("column_squares", "x", inputs[0], DType::f32);
    return {DType::f32, {1, inputs[0].shape.columns()}};
  }

  Partition partition(std::span<const TensorType>, const TensorType& output) const override {
    return by_columns(output.shape.columns(), kAlign);
  }
  // All tokens, but only the columns that this worker sums up.
  Reach reach(std::size_t) const override { return Reach::own; }

  void run(const Io& io) const noexcept override {
    const Slice mine = io.part;
    float* const sums = io.output.row<float>(0);
    for (std::size_t begin = mine.begin; begin < mine.end; begin += kTile) {
      const std::size_t count = std::min(kTile, mine.end - begin);
      std::array<double, kTile> tile{};
      for (std::size_t i = 0; i < io.inputs[0].rows(); ++i) {
        const float* const x = io.inputs[0].row<const float>(i) + begin;
        // The square of an f32 is exact in f64.
        for (std::size_t j = 0; j < count; ++j) tile[j] += static_cast<double>(x[j]) * x[j];
      }
      for (std::size_t j = 0; j < count; ++j) sums[begin + j] = static_cast<float>(tile[j]);
    }
  }
};

}  // namespace

Value column_squares(Graph& graph, Value x) {
  return graph.add(std::make_unique<ColumnSquares>(), {x});
}

}  // namespace lockstep::ops
