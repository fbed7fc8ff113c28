// LayerNorm of whole rows (Ba, Kiros, Hinton 2016).
#include <memory>
#include <vector>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

class LayerNorm final : public RowOp {
 public:
  LayerNorm(const quant::RowKernels& kernels, std::size_t rows, float epsilon)
      : RowOp(rows), kernels_(kernels), epsilon_(epsilon) {}

  std::string_view name() const noexcept override { return "layer_norm"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("layer_norm", "x", x, DType::f32);
    const TensorType row{DType::f32, {x.shape.columns()}};
    expect_type("layer_norm", "weight", inputs[1], row);
    if (inputs.size() > 2) expect_type("layer_norm", "bias", inputs[2], row);
    return x;
  }

  void run(const Io& io) const noexcept override {
    const auto* const weight = io.inputs[1].row<const float>(0);
    const auto* const bias = io.inputs.size() > 2 ? io.inputs[2].row<const float>(0) : nullptr;
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      kernels_.layer_norm(io.inputs[0].row<const float>(i), weight, bias, epsilon_,
                          io.output.row<float>(i), io.output.columns());
    }
  }

 private:
  const quant::RowKernels& kernels_;
  float epsilon_;
};

}  // namespace

Value layer_norm(Graph& graph, Value x, Value weight, std::optional<Value> bias, float epsilon) {
  std::vector<Value> inputs{x, weight};
  if (bias) inputs.push_back(*bias);
  return graph.add(std::make_unique<LayerNorm>(graph.rows(), graph.type(x).shape.rows(), epsilon),
                   std::move(inputs));
}

}  // namespace lockstep::ops
