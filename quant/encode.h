// Choosing an encoder: from f32 rows to the blocks of a format.
//
// FormatTraits::encode is the definition; an instruction set may bring a faster function that
// writes the same bytes. Searching for good scales is most of the work of quantizing a model.
#pragma once

#include <cstddef>

#include "quant/format.h"
#include "quant/isa.h"

namespace lockstep::quant {

// As FormatTraits::encode.
using Encoder = void (*)(const float* values, const float* importance, std::byte* blocks,
                         std::size_t n) noexcept;

// The fastest encoder that uses no instruction set above `isa`; null where encoding is not offered.
// All encoders of a format write the same bytes.
Encoder find_encoder(Format format, Isa isa) noexcept;

}  // namespace lockstep::quant
