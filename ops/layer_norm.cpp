// LayerNorm of whole rows (Ba, Kiros, Hinton 2016).
#include <memory>
#include <vector>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

class LayerNorm final : public Op {
 public:
  LayerNorm(const quant::RowKernels& kernels, std::size_t rows, float epsilon)
      : kernels_(kernels), rows_(rows), epsilon_(epsilon) {}

  std::string_view name() const noexcept override { return "layer_norm"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("layer_norm", "x", x, DType::f32);
    const TensorType row{DType::f32, {x.shape.columns()}};
    expect_type("layer_norm", "weight", inputs[1], row);
    if (inputs.size() > 2) expect_type("layer_norm", "bias", inputs[2], row);
    return x;
  }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(rows_);
  }
  bool accepts(const Partition& other) const override { return is_rows(other, rows_); }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t input) const override { return input == 0 ? Reach::own : Reach::all; }

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
  std::size_t rows_;
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
