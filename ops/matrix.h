// Weight matrices as ops see them: packed, and cut into one shard per worker that loaded it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ops/split.h"
#include "quant/kernels.h"

namespace lockstep::ops {

// A matrix [rows, columns] for y = W x. The shards are contiguous, in row order, and cut where
// split(rows, align, lane) cuts for the team that loaded them; any other team computes the same
// bits.
struct ShardedMatrix {
  struct Shard {
    Slice rows;
    const std::byte* panels = nullptr;
    std::vector<const std::byte*> copies = {};  // by NUMA node, where there is one on each

    const std::byte* panels_for(unsigned node) const noexcept {
      return node < copies.size() ? copies[node] : panels;
    }
  };

  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t align = 1;  // a multiple of kernel->panel_rows
  const quant::MatmulKernel* kernel = nullptr;
  const std::byte* side = nullptr;  // side data, if the format has it
  std::vector<Shard> shards;

  std::size_t panel_bytes() const noexcept { return kernel->panel_bytes(columns); }
  // Bytes of the packed form.
  std::size_t bytes() const noexcept {
    const std::size_t panels = (rows + kernel->panel_rows - 1) / kernel->panel_rows;
    return panels * panel_bytes();
  }
};

// A table of rows in the file's own blocks, for looking rows up (token embeddings).
struct RowTable {
  quant::Format format = quant::Format::f32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  const std::byte* data = nullptr;
  const std::byte* side = nullptr;  // side data, if the format has it
};

// The kernel for any weight format: an integer kernel from quant::find_matmul, or for the dense
// formats (f32, f16, bf16) the Eigen kernels of dense_rows.inl.h. Null if the format cannot be
// multiplied with.
const quant::MatmulKernel* find_kernel(quant::Format format, quant::Isa isa) noexcept;
// Every dense kernel built into this binary: the dense half of quant::all_matmul_kernels().
std::span<const quant::MatmulKernel> dense_kernels() noexcept;

}  // namespace lockstep::ops
