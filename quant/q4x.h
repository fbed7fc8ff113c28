// Making Q4X tensors: learning the side data of a tensor, then encoding its rows with it.
//
//   q4x::Learner learner(rows, columns);
//   for all rows, in any pieces: learner.take(first_row, row_count, values, importance);
//   std::byte side[q4x::kSideBytes];
//   learner.learn(isa, side);
//   for all rows: q4x::find_encoder(isa)(side, values, importance, blocks, columns);
//
// The side data depends on the values alone: not on the order or the size of the pieces, nor on the
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/formats/q4x.h"
#include "quant/isa.h"
#include "quant/q4x_search.h"

namespace lockstep::quant::q4x {

// As FormatTraits::encode, with the side data in front. A group with a value that is not finite
// gets the scale that first_bad_scale() finds.
using Encoder = void (*)(const std::byte* side, const float* values, const float* importance,
                         std::byte* blocks, std::size_t n) noexcept;

// The fastest encoder that uses no instruction set above `isa`; all write the same bytes.
Encoder find_encoder(Isa isa) noexcept;

// Four codebooks of 16 levels have to be found from a histogram of the groups of the tensor. Groups
// are normalized by their scale, which itself depends on the codebook, so this goes in rounds like
// Lloyd and Max: every group of a sample takes the codebook, scale and levels that suit it, then
// every level moves to the weighted mean of the values that took it.
class Learner {
 public:
  // A tensor of `rows` rows of `columns` values, a multiple of 256.
  Learner(std::size_t rows, std::size_t columns);

  // Rows [first_row, first_row + count); `importance` as in encode, one per column, or null. Every
  // row must be taken once. Rows of different calls may overlap in time if their learners differ;
  // see merge().
  void take(std::size_t first_row, std::size_t count, const float* values, const float* importance);
  // Adds what another learner of the same tensor took.
  void merge(const Learner& other);

  // Writes kSideBytes bytes.
  void learn(Isa isa, std::byte* side) const;

 private:
  std::size_t columns_;
  std::size_t groups_;          // of the tensor
  std::size_t sampled_;         // of them kept
  float largest_ = 0;           // magnitude of a finite value
  std::vector<float> values_;   // [sampled, 32]
  std::vector<float> weights_;  // [sampled, 32]
};

}  // namespace lockstep::quant::q4x
