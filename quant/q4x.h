// Making Q4X tensors: learning the side data of a tensor, then encoding its rows with it. Reached
// through encode.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/encode.h"
#include "quant/formats/q4x.h"
#include "quant/isa.h"
#include "quant/q4x_search.h"

namespace lockstep::quant::q4x {

// A group with a value that is not finite gets the scale that first_bad_scale() finds.
SideEncoder find_encoder(Isa isa) noexcept;

// Four codebooks of 16 levels have to be found from a histogram of the groups of the tensor. Groups
// are normalized by their scale, which itself depends on the codebook, so this goes in rounds like
// Lloyd and Max: every group of a sample takes the codebook, scale and levels that suit it, then
// every level moves to the weighted mean of the values that took it.
class Learner final : public SideLearner {
 public:
  // A tensor of `rows` rows of `columns` values, a multiple of 256.
  Learner(std::size_t rows, std::size_t columns);

  void take(std::size_t first_row, std::size_t count, const float* values,
            const float* importance) override;
  void merge(const SideLearner& other) override;
  void learn(Isa isa, std::byte* side) const override;

 private:
  std::size_t columns_;
  std::size_t groups_;          // of the tensor
  std::size_t sampled_;         // of them kept
  float largest_ = 0;           // magnitude of a finite value
  std::vector<float> values_;   // [sampled, 32]
  std::vector<float> weights_;  // [sampled, 32]
};

}  // namespace lockstep::quant::q4x
