// What ops declare that make every row of their output from the same row of their first input, and
// need the whole of it.
#pragma once

#include <cstddef>
#include <span>

#include "ops/region.h"

namespace lockstep::ops {

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

}  // namespace lockstep::ops
