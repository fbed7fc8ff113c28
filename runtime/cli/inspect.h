// What is in a model file, for people and for programs: metadata, tensors, and how many bits a
// weight takes. Files come from anywhere, so whatever is shown has been made harmless first.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "runtime/gguf.h"

namespace lockstep::cli {

// Aligned columns, ending in a newline. Long strings and arrays are cut.
std::string inspect_text(const GgufFile& file);

// The same as one object. Strings are whole, with U+FFFD for what is no UTF-8; arrays of more than
// 64 elements have "count" and only their "first" elements.
nlohmann::ordered_json inspect_json(const GgufFile& file);

}  // namespace lockstep::cli
