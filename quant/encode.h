// Choosing an encoder: from f32 rows to the blocks of a format.
//
// FormatTraits::encode is the definition; an instruction set may bring a faster function that
// writes the same bytes. Searching for good scales is most of the work of quantizing a model.
#pragma once

#include <cstddef>
#include <memory>

#include "quant/format.h"
#include "quant/isa.h"

namespace lockstep::quant {

// As FormatTraits::encode.
using Encoder = void (*)(const float* values, const float* importance, std::byte* blocks,
                         std::size_t n) noexcept;

// The fastest encoder that uses no instruction set above `isa`; null where encoding is not offered.
// All encoders of a format write the same bytes.
Encoder find_encoder(Format format, Isa isa) noexcept;

// What a format with side data learns from a whole tensor before its rows can be encoded.
//
//   const auto learner = make_side_learner(format, rows, columns);
//   for all rows, in any pieces: learner->take(first_row, row_count, values, importance);
//   learner->learn(isa, side);  // FormatTraits::side_bytes() bytes
//   for all rows: find_side_encoder(format, isa)(side, values, importance, blocks, columns);
//
// The side data depends on the values alone: not on the order or the size of the pieces, nor on the
// instruction set.
class SideLearner {
 public:
  virtual ~SideLearner() = default;
  // Rows [first_row, first_row + count); `importance` as in Encoder, one per column, or null. Every
  // row is taken once, by this learner or by one that is merged into it.
  virtual void take(std::size_t first_row, std::size_t count, const float* values,
                    const float* importance) = 0;
  // Adds what another learner of the same tensor took: threads have one each.
  virtual void merge(const SideLearner& other) = 0;
  virtual void learn(Isa isa, std::byte* side) const = 0;
};

// Null if the format has no side data. `columns`: whole blocks.
std::unique_ptr<SideLearner> make_side_learner(Format format, std::size_t rows,
                                               std::size_t columns);

// As Encoder, with the side data in front.
using SideEncoder = void (*)(const std::byte* side, const float* values, const float* importance,
                             std::byte* blocks, std::size_t n) noexcept;

// As find_encoder(), for the formats with side data; null for all others.
SideEncoder find_side_encoder(Format format, Isa isa) noexcept;

}  // namespace lockstep::quant
