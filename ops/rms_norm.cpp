// RMSNorm of whole rows (Zhang and Sennrich 2019).
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

class RmsNorm final : public RowOp {
 public:
  RmsNorm(const quant::RowKernels& kernels, std::size_t rows, float epsilon)
      : RowOp(rows), kernels_(kernels), epsilon_(epsilon) {}

  std::string_view name() const noexcept override { return "rms_norm"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("rms_norm", "x", x, DType::f32);
    expect_type("rms_norm", "weight", inputs[1], {DType::f32, {x.shape.columns()}});
    return x;
  }

  void run(const Io& io) const noexcept override {
    const auto* weight = io.inputs[1].row<const float>(0);
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernels_.rms_norm(io.inputs[0].row<const float>(i), weight, epsilon_, io.output.row<float>(i),
                        io.output.columns());
    }
  }

 private:
  const quant::RowKernels& kernels_;
  float epsilon_;
};

}  // namespace

Value rms_norm(Graph& graph, Value x, Value weight, float epsilon) {
  return graph.add(std::make_unique<RmsNorm>(graph.rows(), graph.type(x).shape.rows(), epsilon),
                   {x, weight});
}

}  // namespace lockstep::ops
