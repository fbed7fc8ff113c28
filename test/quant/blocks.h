// Blocks worked out by hand: setting their fields and reading what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "quant/format.h"
#include "quant/half.h"

namespace lockstep::test {

using Block = std::vector<std::byte>;

inline void set(Block& block, std::size_t at, unsigned value) {
  block[at] = static_cast<std::byte>(value);
}

inline void set_half(Block& block, std::size_t at, float value) {
  const std::uint16_t half = quant::f32_to_f16(value);
  std::memcpy(&block[at], &half, sizeof half);
}

inline void set_word(Block& block, std::size_t at, std::uint32_t value) {
  std::memcpy(&block[at], &value, sizeof value);
}

inline std::vector<float> decode(quant::Format format, const Block& block) {
  const quant::FormatTraits& traits = quant::traits(format);
  std::vector<float> values(block.size() / traits.block_bytes * traits.block_values);
  traits.decode(block.data(), values.data(), values.size());
  return values;
}

// Values that are not zero, as "index=value" in order.
inline std::string nonzero(const std::vector<float>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0.0f) continue;
    text += std::to_string(i) + "=" + std::to_string(static_cast<int>(values[i])) + " ";
  }
  return text;
}

}  // namespace lockstep::test
