// A quantized model file from another, as `lockstep quantize` makes it.
#pragma once

#include <filesystem>

#include "runtime/engine.h"
#include "runtime/gguf.h"
#include "runtime/quantize/file_plan.h"
#include "runtime/quantize/file_writer.h"

namespace lockstep::test {

inline quantize::Request request_for(const char* mix) {
  quantize::Request request;
  request.mix = quantize::find_mix(mix);
  return request;
}

inline void quantize_file(const std::filesystem::path& from, const std::filesystem::path& to,
                          const quantize::Request& request, const Engine& engine,
                          const quantize::ImportanceMatrix* importance = nullptr) {
  const GgufFile file = GgufFile::open(from);
  const quantize::FilePlan plan = quantize::plan_file(file, request, importance);
  quantize::write_file(file, plan, request, {importance, "matrix.gguf"}, engine, to, {});
}

inline void quantize_file(const std::filesystem::path& from, const std::filesystem::path& to,
                          const char* mix, const Engine& engine) {
  quantize_file(from, to, request_for(mix), engine);
}

}  // namespace lockstep::test
