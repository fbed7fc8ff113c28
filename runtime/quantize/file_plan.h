// What a quantized file will hold, decided before the first weight is read: the format of every
// tensor and the importance of its columns. A recipe proposes; options of the user win.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quant/format.h"
#include "runtime/gguf.h"
#include "runtime/quantize/importance.h"
#include "runtime/quantize/recipe.h"

namespace lockstep::quantize {

// Tensors whose name has a match of the pattern (a Perl regular expression) get the format.
struct Override {
  std::string pattern;
  quant::Format format = quant::Format::f32;
};

struct Request {
  const Mix* mix = nullptr;
  bool pure = false;                             // the mix's format for every matrix, no rules
  std::vector<Override> overrides;               // the first that matches decides
  std::optional<quant::Format> output;           // of the output matrix
  std::optional<quant::Format> token_embedding;  // of the embedding
};

struct PlannedTensor {
  const GgufTensor* source = nullptr;
  const quant::FormatTraits* target = nullptr;
  const quant::FormatTraits* wanted = nullptr;  // not `target` where the rows do not fit it
  std::uint64_t bytes = 0;                      // in the new file
  // Mean squares of the input columns, [matrices, columns]; empty: all count alike.
  std::vector<float> importance;

  bool is_copy() const noexcept { return source->format == target; }
  bool fell_back() const noexcept { return wanted != target; }
};

struct FilePlan {
  std::vector<PlannedTensor> tensors;  // in the order of the file
  std::uint64_t elements = 0;
  std::uint64_t source_bytes = 0;
  std::uint64_t bytes = 0;
  // Tensors that lose precision for the second time.
  std::size_t requantized = 0;
};

// `importance` may be null. Throws Error(usage) for a pattern that is wrong or matches no matrix or
// for a mix that needs an importance matrix, Error(bad_model) for a format that cannot be
// read, Error(bad_input) for an importance matrix of another model.
FilePlan plan_file(const GgufFile& file, const Request& request,
                   const ImportanceMatrix* importance);

// Why the mix cannot be made of this plan as it stands, or "": it asks for an importance matrix.
std::string missing_importance(const FilePlan& plan, const Request& request);

}  // namespace lockstep::quantize
