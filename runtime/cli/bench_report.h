// The result of `lockstep bench` in the formats of llama-bench. A row is a list of named fields,
// made once; the formats are renderings of it. Fields that both programs have carry its names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bench/batched_bench.h"
#include "runtime/bench/model_bench.h"

namespace lockstep::cli {

enum class BenchFormat : std::uint8_t { md, csv, json, jsonl, sql };

std::vector<std::string> bench_format_names();
// One of those names.
BenchFormat bench_format_named(std::string_view name);

struct BenchedModel {
  std::string path;
  std::uint64_t file_bytes = 0;
  const Model* model = nullptr;
  std::string kv_type;
  MemoryReport memory;  // of the weights
};

// "llama 1.1B q4_k": the architecture, the size and the format of the first matrix.
std::string model_type(const ModelInfo& info);

nlohmann::ordered_json bench_row(const BenchedModel& model, const bench::ModelResult& result);
nlohmann::ordered_json batched_row(const BenchedModel& model, const bench::BatchedResult& result);

// Writes rows as they come: begin(), row() for each, end(). Every call returns text for stdout.
class BenchWriter {
 public:
  BenchWriter(BenchFormat format, bool batched) : format_(format), batched_(batched) {}
  std::string begin() const;
  std::string row(const nlohmann::ordered_json& row);
  std::string end() const;

 private:
  BenchFormat format_;
  bool batched_;
  bool first_ = true;
};

}  // namespace lockstep::cli
