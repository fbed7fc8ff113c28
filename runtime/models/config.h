// The hyperparameters of a model, read from its metadata and checked: every extent positive,
// bounded and consistent with the others, everything that would change the arithmetic either
// understood or refused.
#pragma once

#include <cstddef>
#include <string>

#include "ops/ops.h"

namespace lockstep {

class GgufFile;

// What an architecture name stands for: one row of the table in registry.cpp.
struct ArchitectureTraits {
  const char* name;  // general.architecture
  ops::RopePairing pairing;
};

struct ModelConfig {
  std::string architecture;
  std::size_t layers = 0;
  std::size_t width = 0;  // embedding length
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t feed_forward = 0;
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // trained context
  float norm_epsilon = 0.0f;
  ops::RopeParams rope;  // frequency_factors are set by the model that owns them

  std::size_t q_width() const noexcept { return heads * head_dim; }
  std::size_t kv_width() const noexcept { return kv_heads * head_dim; }

  // Throws Error(bad_model) naming the key.
  static ModelConfig read(const GgufFile& file, const ArchitectureTraits& traits,
                          std::size_t vocabulary);
};

}  // namespace lockstep
