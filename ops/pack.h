// From rows of a file to panels of a kernel: the one place that knows how a slice of a matrix
// becomes consecutive panels. The loader packs each worker's slice with it, and so do the tests.
#pragma once

#include <cstddef>

#include "ops/split.h"
#include "quant/kernels.h"

namespace lockstep::ops {

// Bytes of `rows` packed rows: whole panels, the last one maybe partly used.
inline std::size_t packed_bytes(const quant::MatmulKernel& kernel, std::size_t rows,
                                std::size_t columns) noexcept {
  return (rows + kernel.panel_rows - 1) / kernel.panel_rows * kernel.panel_bytes(columns);
}

// Packs rows [slice.begin, slice.end) of the matrix whose row 0 is at `file_rows`, in the file's
// own blocks, into packed_bytes(kernel, slice.size(), columns) bytes at `panels`. The slice begins
// at a panel edge and ends at one or with the matrix.
inline void pack_rows(const quant::MatmulKernel& kernel, const std::byte* file_rows, Slice slice,
                      std::size_t columns, std::byte* panels) noexcept {
  const std::size_t row_bytes = quant::bytes_of(kernel.format, columns);
  const std::size_t panel_bytes = kernel.panel_bytes(columns);
  for (std::size_t row = slice.begin; row < slice.end; row += kernel.panel_rows) {
    const std::size_t left = slice.end - row;
    const std::size_t rows = left < kernel.panel_rows ? left : kernel.panel_rows;
    kernel.pack(file_rows + row * row_bytes, rows, columns, panels);
    panels += panel_bytes;
  }
}

}  // namespace lockstep::ops
