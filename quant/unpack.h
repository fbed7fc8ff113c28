// Unpacking a block of the codebook and ternary formats (formats/unpacked.h), for kernels that are
// compiled for an instruction set: they must not see inline functions that others use as well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"

namespace lockstep::quant {

// 256 values: value i = scale * (half i / 16 % 2 of scales[i / 32]) * q[i], |q| at most 62, scales
// from 1 to 31. Two scales lie in one word since they are read together: a load of two smaller
// stores would have to wait for them.
struct UnpackedBlock {
  std::uint32_t scales[8];  // of 16 bits each, the first in the low half
  alignas(32) std::int8_t q[256];
  float scale;
};

template <Format kFormat>
void unpack_block(const std::byte* block, UnpackedBlock& unpacked) noexcept;

template <>
void unpack_block<Format::iq1_s>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq1_m>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq2_xxs>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq2_xs>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq2_s>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq3_xxs>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::iq3_s>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::tq1_0>(const std::byte* block, UnpackedBlock& unpacked) noexcept;
template <>
void unpack_block<Format::tq2_0>(const std::byte* block, UnpackedBlock& unpacked) noexcept;

}  // namespace lockstep::quant
