// What ops declare whose output can be divided into rows, and that make it part by part from the
// same part of their inputs.
#pragma once

#include <cstddef>
#include <span>

#include "ops/region.h"

namespace lockstep::ops {

// Every row is made from the same row of the first input, and needs the whole of it.
class RowOp : public Op {
 public:
  explicit RowOp(std::size_t rows) : rows_(rows) {}

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(rows_);
  }
  bool accepts(const Partition& other) const override { return is_rows(other, rows_); }
  // Cheap per token and needed by all that follows, so each worker may repeat it for itself rather
  // than wait at a barrier.
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t input) const override { return input == 0 ? Reach::own : Reach::all; }

 protected:
  std::size_t rows() const noexcept { return rows_; }

 private:
  std::size_t rows_;
};

// Every block of a row is made from the same block of the inputs, so rows may be cut between
// blocks, too.
class BlockOp : public RowOp {
 public:
  BlockOp(const Shape& shape, std::size_t block)
      : RowOp(shape.rows()), columns_(shape.columns()), block_(block) {}

  bool accepts(const Partition& other) const override {
    return RowOp::accepts(other) || is_columns(other, columns_, block_);
  }
  Reach reach(std::size_t) const override { return Reach::own; }

 protected:
  std::size_t columns() const noexcept { return columns_; }
  std::size_t block() const noexcept { return block_; }

 private:
  std::size_t columns_;
  std::size_t block_;
};

}  // namespace lockstep::ops
