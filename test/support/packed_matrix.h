// Weight matrices packed as a team of loaders would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/matrix.h"
#include "ops/pack.h"
#include "ops/split.h"
#include "support/side_data.h"

namespace lockstep::test {

// A matrix packed for a team of `team` loaders, each shard in memory of its own.
struct Packed {
  ops::ShardedMatrix matrix;
  std::vector<std::vector<std::uint64_t>> memory;
};

inline Packed pack(const quant::MatmulKernel& kernel, const std::vector<std::byte>& file,
                   std::size_t rows, std::size_t columns, unsigned team,
                   std::size_t panels_per_align = 1) {
  Packed packed;
  packed.matrix.name = "weights";
  packed.matrix.rows = rows;
  packed.matrix.columns = columns;
  packed.matrix.align = kernel.panel_rows * panels_per_align;
  packed.matrix.kernel = &kernel;
  packed.matrix.side = side_data(kernel.format);
  for (unsigned worker = 0; worker < team; ++worker) {
    const ops::Slice slice = ops::split(rows, packed.matrix.align, {worker, team, 0, 1});
    const std::size_t bytes = ops::packed_bytes(kernel, slice.size(), columns);
    auto& words = packed.memory.emplace_back((bytes + 128) / sizeof(std::uint64_t), 0);
    void* start = words.data();
    std::size_t space = words.size() * sizeof(std::uint64_t);
    std::align(64, bytes, start, space);
    auto* panels = static_cast<std::byte*>(start);
    ops::pack_rows(kernel, file.data(), slice, columns, panels);
    packed.matrix.shards.push_back({slice, panels});
  }
  return packed;
}

}  // namespace lockstep::test
