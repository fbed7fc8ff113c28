// Activations to int8, once per value: a node of its own, so that all matmuls of the same x share
// it and no op hides a phase or a barrier.
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/row_op.h"

namespace lockstep::ops {
namespace {

class Quantize final : public BlockOp {
 public:
  Quantize(const quant::RowKernels& kernels, const TensorType& x, quant::Format activation)
      : BlockOp(x.shape, quant::traits(activation).block_values),
        kernels_(kernels),
        activation_(activation) {}

  std::string_view name() const noexcept override { return "quantize"; }
  std::string detail() const override { return std::string(quant::traits(activation_).name); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_rows("quantize", "x", x, DType::f32);
    if (x.shape.columns() % block() != 0) {
      shape_error("quantize", "x", x, "columns in whole blocks of " + std::to_string(block()));
    }
    return {activation_ == quant::Format::q8_0 ? DType::act_q8_0 : DType::act_q8_k, x.shape};
  }

  void run(const Io& io) const noexcept override {
    const auto layout = quant::ActivationLayout::of(activation_, columns());
    const Region mine = region(io);
    const std::size_t first = mine.columns.begin;
    if (mine.columns.empty()) return;
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      std::byte* const row = io.output.row<std::byte>(i);
      kernels_.quantize_activations(
          io.inputs[0].row<const float>(i) + first, mine.columns.size(), block(),
          reinterpret_cast<std::int8_t*>(row + layout.q) + first,
          reinterpret_cast<std::int16_t*>(row + layout.sums) + first / quant::kActivationSumRun,
          reinterpret_cast<float*>(row + layout.scale) + first / block());
    }
  }

 private:
  const quant::RowKernels& kernels_;
  quant::Format activation_;
};

}  // namespace

Value quantize(Graph& graph, Value x, quant::Format activation) {
  if (activation != quant::Format::q8_0 && activation != quant::Format::q8_k) {
    throw ShapeError("quantize: activations cannot be " +
                     std::string(quant::traits(activation).name) + ", expected Q8_0 or Q8_K");
  }
  auto op = std::make_unique<Quantize>(graph.rows(), graph.type(x), activation);
  for (const Node& node : graph.nodes()) {
    if (node.op->name() == op->name() && node.inputs[0] == x && node.op->detail() == op->detail()) {
      return node.output;
    }
  }
  return graph.add(std::move(op), {x});
}

}  // namespace lockstep::ops
