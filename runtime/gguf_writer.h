// Writing GGUF files (version 3, little endian).
//
// The header is collected in memory, the weights are not: each tensor brings a function that
// produces its bytes piece by piece, so a model of any size is written with a few megabytes. The
// file appears under its name only when it is complete.
//
//   GgufWriter writer;
//   writer.add_string("general.architecture", "llama");
//   writer.add_tensor("output.weight", quant::Format::q8_0, {2048, 32000}, fill);
//   writer.write("model.gguf");
//
// Who computes tensors in parallel adds them without a function, asks where they will lie and
// writes header and data with an OutputFile of his own.
//
// Keys and tensors keep their order. Everything that GgufFile::open() would refuse is refused here,
// as Error(internal): writing a wrong file is the caller's defect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "quant/format.h"
#include "runtime/gguf.h"

namespace lockstep {

class GgufWriter {
 public:
  // Produces the bytes [offset, offset + into.size()) of a tensor. Called in ascending order
  // without gaps; pieces are whole blocks of the format, at most about one MiB.
  using Fill = std::function<void(std::uint64_t offset, std::span<std::byte> into)>;

  // Any value, checked against its type. "general.alignment" also sets the alignment of the data.
  void add(std::string key, MetadataValue value);
  void add_u32(std::string key, std::uint32_t value);
  void add_f32(std::string key, float value);
  void add_bool(std::string key, bool value);
  void add_string(std::string key, std::string value);
  void add_strings(std::string key, std::vector<std::string> values);
  void add_f32s(std::string key, const std::vector<float>& values);
  void add_i32s(std::string key, const std::vector<std::int32_t>& values);

  // `dims` as in the file: fastest first.
  void add_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims,
                  Fill fill);
  // The bytes are copied.
  void add_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims,
                  std::span<const std::byte> bytes);

  // Its bytes are written by the caller, at tensor_offsets(); write() refuses such a writer.
  void add_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims);

  // The size that write() will produce.
  std::uint64_t file_bytes() const;
  // What lies before the data, padding included.
  std::vector<std::byte> header() const;
  // Where in the file each tensor begins. What lies between them is zero.
  std::vector<std::uint64_t> tensor_offsets() const;

  // Writes to a temporary name in the same folder and renames; an existing file is replaced. May be
  // called more than once. Throws Error(cannot_create) or Error(io), and leaves nothing behind.
  void write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::string name;
    quant::Format format;
    std::vector<std::uint64_t> dims;
    std::uint64_t bytes;
    Fill fill;
  };

  void append_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims,
                     Fill fill);

  std::uint64_t alignment_ = 32;
  std::uint64_t entry_count_ = 0;
  std::vector<std::byte> entries_;  // the metadata entries, encoded
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> tensor_names_;
};

}  // namespace lockstep
