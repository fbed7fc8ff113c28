// A tiny random model file for tests: a `llama` of two layers in any format that can be made
// randomly.
//
//   TempDir folder;
//   write_tiny_model(folder.path() / "model.gguf", tiny_shape(Format::q4_0), Format::q4_0);
#pragma once

#include <cstdint>
#include <filesystem>

#include "perf/llama_file.h"

namespace lockstep::test {

// As small as the format's block allows: width 64 and feed-forward 96 (no multiple of 64) for
// blocks of up to 32 values, width 256 and feed-forward 512 for blocks of 256. Change what a test
// needs otherwise.
inline perf::LlamaShape tiny_shape(quant::Format format) {
  perf::LlamaShape shape;
  const bool wide = quant::traits(format).block_values > 32;
  shape.layers = 2;
  shape.width = wide ? 256 : 64;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.feed_forward = wide ? 512 : 96;
  shape.vocabulary = 300;
  shape.context = 128;
  return shape;
}

// Tokens: 0 <unk>, 1 <s>, 2 </s>, 3..258 the bytes, 259 <|im_start|>, 260 <|im_end|>, then pieces.
// The chat template is ChatML. The bytes depend on the arguments alone.
inline void write_tiny_model(const std::filesystem::path& path, const perf::LlamaShape& shape,
                             quant::Format format, std::uint64_t seed = 1) {
  perf::write_llama_file(path, shape, format, seed, "Tiny random weights");
}

inline void write_tiny_model(const std::filesystem::path& path, quant::Format format,
                             std::uint64_t seed = 1) {
  write_tiny_model(path, tiny_shape(format), format, seed);
}

}  // namespace lockstep::test
