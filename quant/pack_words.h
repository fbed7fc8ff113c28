// What packing is made of: the walk over the blocks of up to 8 rows, and moving 4-byte words of a
// row into its lane. Four columns of one row always travel together. Plain C++ without
// instruction-set flags: the packed bytes are the same for every instruction set that reads panels.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/formats/block.h"
#include "quant/packing.h"

namespace lockstep::quant {

inline constexpr std::size_t kWord = sizeof(std::uint32_t);
inline constexpr std::size_t kStep = kPanelRows * kWord;                    // bytes of one step
inline constexpr std::size_t kHalves = kPanelRows * sizeof(std::uint16_t);  // one f16 per row

inline std::uint32_t word(const std::byte* from) noexcept {
  return load_field<std::uint32_t>(from);
}

// Calls copy_block(file block, first byte of the packed block, row) for all blocks of all rows.
template <std::size_t kValues, std::size_t kBytes, class F>
void pack_rows(const std::byte* file_rows, std::size_t rows, std::size_t k, std::byte* panel,
               F copy_block) noexcept {
  const std::size_t blocks = k / kValues;
  if (rows < kPanelRows) std::memset(panel, 0, blocks * kBytes * kPanelRows);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t r = 0; r < rows; ++r) {
      copy_block(file_rows + (r * blocks + b) * kBytes, panel + b * kBytes * kPanelRows, r);
    }
  }
}

// Copies `words` consecutive words of a row into the row's lane of as many steps. Returns the byte
// after the last step.
inline std::byte* scatter_words(const std::byte* from, std::size_t words, std::byte* step,
                                std::size_t row) noexcept {
  for (std::size_t i = 0; i < words; ++i, step += kStep) {
    std::memcpy(step + row * kWord, from + i * kWord, kWord);
  }
  return step;
}

// Copies a row's f16 into its lane. Returns the byte after the 8 of them.
inline std::byte* place_half(const std::byte* from, std::byte* halves, std::size_t row) noexcept {
  std::memcpy(halves + 2 * row, from, 2);
  return halves + kHalves;
}

}  // namespace lockstep::quant
