// A slice of a packed matrix times some tokens. The slice may lie in any shards: the team that runs
// need not be the team that loaded.
#include "ops/multiply.h"

#include <algorithm>

#include "quant/format.h"

namespace lockstep::ops {

DType activation_dtype(const ShardedMatrix& matrix) noexcept {
  const quant::Format activation = quant::traits(matrix.kernel->format).activation;
  if (activation == quant::Format::q8_0) return DType::act_q8_0;
  return activation == quant::Format::q8_k ? DType::act_q8_k : DType::f32;
}

void check_matrix(std::string_view op, const ShardedMatrix& matrix) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError(std::string(op) + ": " + matrix.name + " " +
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

void multiply(const ShardedMatrix& matrix, Slice slice, const MultiplyArgs& args) noexcept {
  const quant::MatmulKernel& kernel = *matrix.kernel;
  const std::size_t panel_bytes = matrix.panel_bytes();
  for (const ShardedMatrix::Shard& shard : matrix.shards) {
    const Slice part{std::max(slice.begin, shard.rows.begin), std::min(slice.end, shard.rows.end)};
    if (part.empty()) continue;
    // Both edges are multiples of the panel, so whole panels lie before this part of the shard.
    const std::size_t panels = (part.begin - shard.rows.begin) / kernel.panel_rows;
    kernel.run({.panels = shard.panels_for(args.node) + panels * panel_bytes,
                .rows = part.size(),
                .k = matrix.columns,
                .activations = args.activations,
                .activation_stride = args.activation_stride,
                .tokens = args.tokens,
                .y = args.y + part.begin,
                .y_stride = args.y_stride,
                .side = matrix.side});
  }
}

}  // namespace lockstep::ops
