// The rules of a GGUF file that its reader and its writer share: limits, sizes and alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "quant/format.h"
#include "runtime/gguf.h"

namespace lockstep {

// Limits that no sane file comes near; they bound the work and the memory of reading any header.
inline constexpr std::uint64_t kMaxGgufName = 65535;         // bytes of a key or tensor name
inline constexpr std::uint64_t kMaxGgufEntries = 1u << 17;   // metadata entries
inline constexpr std::uint64_t kMaxGgufTensors = 1u << 18;   // tensors
inline constexpr std::uint64_t kMaxGgufHeader = 256u << 20;  // bytes in memory once read
inline constexpr std::uint64_t kMaxGgufRank = 4;

// Reasons why a value cannot be the alignment of tensor data; empty if it can.
std::string_view alignment_problem(std::uint64_t alignment) noexcept;

// Bytes of one value of a fixed-size type in the file; 0 for string and array.
std::size_t bytes_of(MetadataType type) noexcept;

struct TensorSize {
  std::uint64_t elements;
  std::uint64_t bytes;
};

// Nothing if a number does not fit into 63 bits. dims[0] must be a multiple of the format's block.
std::optional<TensorSize> tensor_size(const quant::FormatTraits& format,
                                      std::span<const std::uint64_t> dims) noexcept;

}  // namespace lockstep
