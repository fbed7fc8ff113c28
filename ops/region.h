// Partitions in terms of a tensor's rows and columns. Ops that can work under several partitions
// compute one rectangle of their output; this is where a part of the partition becomes that
// rectangle.
#pragma once

#include <cstddef>

#include "ops/op.h"

namespace lockstep::ops {

struct Region {
  Slice rows;
  Slice columns;
};

// io.part of a [rows, columns] output under a partition of kind rows, columns or replicated.
inline Region region(const Io& io, std::size_t rows, std::size_t columns) noexcept {
  switch (io.partition.kind) {
    case Partition::Kind::rows:
      return {io.part, {0, columns}};
    case Partition::Kind::columns:
      return {{0, rows}, io.part};
    case Partition::Kind::replicated:
      return {{0, rows}, {0, columns}};
    case Partition::Kind::units:
      break;  // belongs to one op alone, which does not come here
  }
  return {};
}

inline Region region(const Io& io) noexcept {
  return region(io, io.output.rows(), io.output.columns());
}

inline Partition by_rows(std::size_t rows) noexcept {
  return {.kind = Partition::Kind::rows, .extent = rows, .align = 1};
}
inline Partition by_columns(std::size_t columns, std::size_t align) noexcept {
  return {.kind = Partition::Kind::columns, .extent = columns, .align = align};
}

inline bool is_rows(const Partition& partition, std::size_t rows) noexcept {
  return partition.kind == Partition::Kind::rows && partition.extent == rows;
}
// Whether this cuts `columns` columns at multiples of `align` only.
inline bool is_columns(const Partition& partition, std::size_t columns,
                       std::size_t align) noexcept {
  return partition.kind == Partition::Kind::columns && partition.extent == columns &&
         partition.align % align == 0;
}

}  // namespace lockstep::ops
