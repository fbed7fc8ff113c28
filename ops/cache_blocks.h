// Where a position of a sequence lies in a cache that is cut into blocks. A table gives every slot
// its blocks in order, so that sequences share memory, and share blocks, without lying together
// (paged attention, Kwon et al. 2023). Without a table a slot is one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ops/check.h"
#include "ops/op.h"

namespace lockstep::ops {

class CacheBlocks {
 public:
  // cache [heads, blocks, block, head_dim]; table i32 [slots, blocks of a slot], or null.
  CacheBlocks(const TensorType& cache, const Tensor* table) noexcept
      : blocks_(cache.shape[1]),
        block_(cache.shape[2]),
        table_(table != nullptr ? table->row<const std::int32_t>(0) : nullptr),
        columns_(table != nullptr ? table->type.shape[1] : 0) {}

  // The row of this position among all rows of the cache. Rows of one block follow each other.
  std::size_t row(std::size_t head, std::size_t slot, std::size_t position) const noexcept {
    if (table_ == nullptr) return (head * blocks_ + slot) * block_ + position;
    const auto block = static_cast<std::size_t>(table_[slot * columns_ + position / block_]);
    return (head * blocks_ + block) * block_ + position % block_;
  }

 private:
  std::size_t blocks_;
  std::size_t block_;  // positions in one
  const std::int32_t* table_;
  std::size_t columns_;
};

// Throws ShapeError unless the table has the right type for the cache.
inline void expect_block_table(std::string_view op, const TensorType& table) {
  if (table.dtype != DType::i32 || table.shape.rank() != 2) {
    shape_error(op, "blocks", table, "i32 [slots, blocks of a slot]");
  }
}

}  // namespace lockstep::ops
