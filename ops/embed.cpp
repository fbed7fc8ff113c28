// Looking token rows up in an embedding table that stays in the file's own blocks: only the rows
// that are asked for are ever decoded.
#include <memory>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

class Embed final : public Op {
 public:
  Embed(const RowTable& table, std::size_t tokens) : table_(table), tokens_(tokens) {}

  std::string_view name() const noexcept override { return "embed"; }
  std::string detail() const override { return std::string(quant::traits(table_.format).name); }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& ids = inputs[0];
    if (ids.dtype != DType::i32 || ids.shape.rank() != 1) {
      shape_error("embed", "ids", ids, "i32 [tokens]");
    }
    const quant::FormatTraits& format = quant::traits(table_.format);
    const std::string table = "embed: the table " + std::string(format.name) + " " +
                              to_string(Shape{table_.rows, table_.columns});
    if (!format.can_decode()) throw ShapeError(table + " has a format that cannot be decoded");
    if (table_.rows == 0 || table_.columns == 0 || table_.columns % format.block_values != 0) {
      throw ShapeError(table + " does not have rows of whole blocks of " +
                       std::to_string(format.block_values));
    }
    if (format.side != nullptr && table_.side == nullptr) {
      throw ShapeError(table + " comes without its side data");
    }
    return {DType::f32, {ids.shape[0], table_.columns}};
  }

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(tokens_);
  }
  bool accepts(const Partition& other) const override { return is_rows(other, tokens_); }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t) const override { return Reach::all; }

  void run(const Io& io) const noexcept override {
    const quant::FormatTraits& format = quant::traits(table_.format);
    const std::size_t row_bytes = quant::bytes_of(table_.format, table_.columns);
    const auto* ids = io.inputs[0].row<const std::int32_t>(0);
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const auto id = static_cast<std::size_t>(ids[i]);
      quant::decode_values(format, table_.side, table_.data + id * row_bytes,
                           io.output.row<float>(i), table_.columns);
    }
  }

 private:
  RowTable table_;
  std::size_t tokens_;
};

}  // namespace

Value embed(Graph& graph, const RowTable& table, Value ids) {
  return graph.add(std::make_unique<Embed>(table, graph.type(ids).shape.elements()), {ids});
}

}  // namespace lockstep::ops
