// Row splitting: who computes which rows. The loader and the executor call this one function, so
// the pages of a weight row and the work on it end up with the same worker by construction.
#pragma once

#include <cstddef>

namespace lockstep::ops {

// One worker's place in the team. Worker ids are contiguous per NUMA node.
struct Lane {
  unsigned worker = 0;
  unsigned workers = 1;
  unsigned node = 0;
  unsigned nodes = 1;
};

// Rows [begin, end).
struct Slice {
  std::size_t begin = 0;
  std::size_t end = 0;

  constexpr std::size_t size() const noexcept { return end - begin; }
  constexpr bool empty() const noexcept { return begin >= end; }
  constexpr bool operator==(const Slice&) const noexcept = default;
};

// The rows of `lane`: contiguous, in worker order, each slice beginning at a multiple of `align`
// (>= 1), sizes differing by at most one `align` unit with the remainder spread evenly. Pure.
constexpr Slice split(std::size_t rows, std::size_t align, const Lane& lane) noexcept {
  const std::size_t units = (rows + align - 1) / align;
  const auto edge = [&](std::size_t worker) {
    const std::size_t row = units / lane.workers * worker * align +
                            units % lane.workers * worker / lane.workers * align;
    return row < rows ? row : rows;
  };
  return {edge(lane.worker), edge(lane.worker + 1)};
}

}  // namespace lockstep::ops
