// Reading and writing importance matrices. What is read is checked: an encoder trusts its weights
// to be finite and not negative.
#include "runtime/quantize/importance.h"

#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "lockstep/error.h"
#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "runtime/printable.h"

namespace lockstep::quantize {

namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";
constexpr const char* kTypeKey = "general.type";
constexpr const char* kType = "imatrix";
constexpr const char* kDatasetsKey = "imatrix.datasets";
constexpr const char* kChunkCountKey = "imatrix.chunk_count";
constexpr const char* kChunkSizeKey = "imatrix.chunk_size";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::bad_input, printable(path.string(), 4096) + ": " + what);
}

// The old form begins with a count of entries.
void refuse_other_files(const std::filesystem::path& path) {
  std::array<char, 4> magic{};
  std::ifstream in(path, std::ios::binary);
  if (!in.read(magic.data(), magic.size())) return;  // GgufFile::open says it better
  if (std::string_view(magic.data(), magic.size()) == "GGUF") return;
  refuse(path,
         "no GGUF file; an importance matrix of the old binary form must be converted first "
         "(llama-imatrix --in-file OLD --output-format gguf -o NEW)");
}

std::vector<float> read_values(const GgufFile& file, const GgufTensor& tensor) {
  if (tensor.format->format != quant::Format::f32) {
    refuse(file.path(), "tensor \"" + printable(tensor.name) + "\" is " +
                            std::string(tensor.format->name) + ", expected F32");
  }
  std::vector<float> values(tensor.elements);
  file.read(tensor, 0, std::as_writable_bytes(std::span(values)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] >= 0.0f) continue;
    refuse(file.path(), "tensor \"" + printable(tensor.name) + "\": value " + std::to_string(i) +
                            " is no finite number of at least 0; the matrix is damaged");
  }
  return values;
}

ImportanceEntry read_entry(const GgufFile& file, const GgufTensor& sums, const std::string& name) {
  const GgufTensor* counts = file.find_tensor(name + std::string(kCounts));
  if (counts == nullptr) {
    refuse(file.path(), "\"" + printable(sums.name) + "\" has no \"" + printable(name) +
                            std::string(kCounts) + "\" beside it");
  }
  ImportanceEntry entry{read_values(file, sums), read_values(file, *counts)};
  if (entry.counts.empty() || entry.sums.empty() || entry.sums.size() % entry.counts.size() != 0) {
    refuse(file.path(), "\"" + printable(name) + "\" has " + std::to_string(entry.sums.size()) +
                            " sums for " + std::to_string(entry.counts.size()) + " counts");
  }
  return entry;
}

}  // namespace

std::vector<float> ImportanceEntry::weights() const {
  std::vector<float> weights(sums.size(), 1.0f);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / columns()];
    if (count > 0.0f) weights[i] = sums[i] / count;
  }
  return weights;
}

ImportanceMatrix ImportanceMatrix::load(const std::filesystem::path& path) {
  refuse_other_files(path);
  const GgufFile file = GgufFile::open(path);
  const std::string type = file.string(kTypeKey).value_or("");
  if (type != kType) {
    refuse(path, "no importance matrix: general.type is \"" + printable(type) +
                     "\", expected \"imatrix\"");
  }
  ImportanceMatrix matrix;
  if (const auto* datasets = file.strings(kDatasetsKey)) matrix.datasets = *datasets;
  matrix.chunk_count = file.u32(kChunkCountKey).value_or(0);
  matrix.chunk_size = file.u32(kChunkSizeKey).value_or(0);
  for (const GgufTensor& tensor : file.tensors()) {
    if (!std::string_view(tensor.name).ends_with(kSums)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
    matrix.entries.emplace(name, read_entry(file, tensor, name));
  }
  if (matrix.entries.empty()) refuse(path, "the importance matrix is empty");
  return matrix;
}

void ImportanceMatrix::save(const std::filesystem::path& path) const {
  GgufWriter writer;
  writer.add_string(kTypeKey, kType);
  writer.add_strings(kDatasetsKey, datasets);
  writer.add_u32(kChunkCountKey, chunk_count);
  writer.add_u32(kChunkSizeKey, chunk_size);
  for (const auto& [name, entry] : entries) {
    writer.add_tensor(name + std::string(kSums), quant::Format::f32,
                      {entry.columns(), entry.matrices()}, std::as_bytes(std::span(entry.sums)));
    writer.add_tensor(name + std::string(kCounts), quant::Format::f32, {1, entry.matrices()},
                      std::as_bytes(std::span(entry.counts)));
  }
  writer.write(path);
}

}  // namespace lockstep::quantize
