// Picking rows: the last token of each prompt goes on to the output matrix, the others need not.
#include <cstring>
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

class GatherRows final : public Op {
 public:
  explicit GatherRows(std::size_t picked) : picked_(picked) {}

  std::string_view name() const noexcept override { return "gather_rows"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const TensorType& rows = inputs[1];
    if (x.shape.rank() != 2) shape_error("gather_rows", "x", x, "[rows, columns]");
    if (rows.dtype != DType::i32 || rows.shape.rank() != 1) {
      shape_error("gather_rows", "rows", rows, "i32 [picked]");
    }
    return {x.dtype, {rows.shape[0], x.shape[1]}};
  }

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(picked_);
  }
  bool accepts(const Partition& other) const override { return is_rows(other, picked_); }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t) const override { return Reach::all; }

  void run(const Io& io) const noexcept override {
    const std::size_t bytes = io.output.type.row_bytes();
    const auto* rows = io.inputs[1].row<const std::int32_t>(0);
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto from = static_cast<std::size_t>(rows[i]);
      std::memcpy(io.output.row<std::byte>(i), io.inputs[0].row<const std::byte>(from), bytes);
    }
  }

 private:
  std::size_t picked_;
};

}  // namespace

Value gather_rows(Graph& graph, Value x, Value rows) {
  return graph.add(std::make_unique<GatherRows>(graph.type(rows).shape.elements()), {x, rows});
}

}  // namespace lockstep::ops
