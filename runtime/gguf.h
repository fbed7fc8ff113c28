// Reading GGUF files (versions 2 and 3, little endian; GGUF specification of the ggml project).
//
// The header is checked completely before anything is allocated for it: every count, size and
// offset against the real file size with overflow-safe arithmetic. A file that opens has only
// tensors whose bytes are really there, in order and without overlap. Tensor data is read on
// demand, never mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "quant/format.h"

namespace lockstep {

// Value types of GGUF metadata; the numbers are the file's.
enum class MetadataType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

std::string_view name_of(MetadataType type) noexcept;

// Integers are widened, keeping their sign; arrays keep their elements in one typed vector.
struct MetadataValue {
  MetadataType type = MetadataType::u8;
  MetadataType element = MetadataType::u8;  // arrays only
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string, std::vector<std::uint64_t>,
               std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>
      value;
};

struct MetadataEntry {
  std::string key;
  MetadataValue value;
};

struct GgufTensor {
  std::string name;
  const quant::FormatTraits* format = nullptr;
  std::vector<std::uint64_t> dims;  // as in the file: fastest first; [columns, rows] for a matrix
  std::uint64_t elements = 0;
  std::uint64_t offset = 0;  // from the start of the file
  std::uint64_t bytes = 0;
};

// "[rows, columns]": slowest first, as code speaks of shapes.
std::string shape_text(const std::vector<std::uint64_t>& dims);

class GgufFile {
 public:
  // Throws Error: no_input if the file cannot be opened, bad_model with key or tensor, byte offset
  // and reason for everything that is wrong inside.
  static GgufFile open(const std::filesystem::path& path);
  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint32_t version() const noexcept { return version_; }
  std::uint64_t alignment() const noexcept { return alignment_; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::uint64_t data_offset() const noexcept { return data_offset_; }
  const std::vector<MetadataEntry>& metadata() const noexcept { return metadata_; }
  const std::vector<GgufTensor>& tensors() const noexcept { return tensors_; }

  const MetadataValue* find(std::string_view key) const noexcept;
  const GgufTensor* find_tensor(std::string_view name) const noexcept;

  // Typed access. The `require` forms throw Error(bad_model) naming the key if it is missing or has
  // another type or is out of range; the optional forms do so only for a wrong type or range.
  std::uint32_t require_u32(std::string_view key) const;
  float require_f32(std::string_view key) const;
  const std::string& require_string(std::string_view key) const;
  std::optional<std::uint32_t> u32(std::string_view key) const;  // any integer type that fits
  std::optional<float> f32(std::string_view key) const;          // f32 or f64
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  // Null if the key is missing; throws if it is no array of that element type.
  const std::vector<std::string>* strings(std::string_view key) const;
  const std::vector<double>* floats(std::string_view key) const;
  // Any integer element type; throws if a value does not fit.
  std::optional<std::vector<std::int32_t>> integers(std::string_view key) const;

  // Reads bytes [offset, offset + into.size()) of the tensor. Thread-safe. Throws Error(io), or
  // Error(internal) for bytes outside of it.
  void read(const GgufTensor& tensor, std::uint64_t offset, std::span<std::byte> into) const;

  // Throws Error(bad_model) with this file's name in front: "FILE: what".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  GgufFile() = default;
  friend class GgufParser;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t data_offset_ = 0;
  std::vector<MetadataEntry> metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, std::size_t> metadata_index_;
  std::unordered_map<std::string, std::size_t> tensor_index_;
};

}  // namespace lockstep
