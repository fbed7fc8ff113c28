// Softmax of whole rows. A row that is all -inf (everything masked) has no maximum to subtract: it
// gives zeros. A NaN makes its own row NaN and no other.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

class Softmax final : public RowOp {
 public:
  Softmax(const quant::RowKernels& kernels, std::size_t rows) : RowOp(rows), kernels_(kernels) {}

  std::string_view name() const noexcept override { return "softmax"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    expect_rows("softmax", "x", inputs[0], DType::f32);
    return inputs[0];
  }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      softmax_row(io.inputs[0].row<const float>(i), io.output.row<float>(i), io.output.columns());
    }
  }

 private:
  void softmax_row(const float* x, float* y, std::size_t n) const noexcept {
    const float max = kernels_.max(x, n);
    if (max == -std::numeric_limits<float>::infinity()) {
      // max() ignores NaN, sum() does not.
      const float sum = kernels_.sum(x, n);
      std::fill(y, y + n, std::isnan(sum) ? sum : 0.0f);
      return;
    }
    std::memcpy(y, x, n * sizeof(float));
    const float sum = kernels_.exp_sum(y, max, n);
    kernels_.scale(1.0f / sum, y, y, n);
  }

  const quant::RowKernels& kernels_;
};

}  // namespace

Value softmax(Graph& graph, Value x) {
  return graph.add(std::make_unique<Softmax>(graph.rows(), graph.type(x).shape.rows()), {x});
}

}  // namespace lockstep::ops
