// Side data of tensors whose format needs them (SideTraits): an I8 tensor beside each in the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gguf.h"

namespace lockstep {

// The tensor that holds the side data of `tensor`, or null: its format has none, or the file lacks
// it.
const GgufTensor* find_side_tensor(const GgufFile& file, const GgufTensor& tensor);

// Whether `tensor` holds the side data of another.
bool is_side_tensor(const GgufFile& file, const GgufTensor& tensor);

// The side data of `tensor`, read and checked; empty if its format has none. Throws
// Error(bad_model) naming the side tensor that is missing, of another shape or damaged.
std::vector<std::byte> read_side_data(const GgufFile& file, const GgufTensor& tensor);

}  // namespace lockstep
