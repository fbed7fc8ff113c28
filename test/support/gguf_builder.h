// Bytes of GGUF files, right or wrong on purpose. Unlike the writer it checks nothing: every field
// can be given any value, and fields may be left out or doubled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/temp_dir.h"

namespace lockstep::test {

// Little-endian fields, one after another. `bytes` may be edited in between.
struct ByteBuilder {
  std::string bytes;

  template <typename T>
  requires std::is_arithmetic_v<T> ByteBuilder& put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
    return *this;
  }
  ByteBuilder& u8(unsigned v) { return put(static_cast<std::uint8_t>(v)); }
  ByteBuilder& u32(std::uint64_t v) { return put(static_cast<std::uint32_t>(v)); }
  ByteBuilder& u64(std::uint64_t v) { return put(v); }
  ByteBuilder& raw(std::string_view text) {
    bytes += text;
    return *this;
  }
  // Length and bytes.
  ByteBuilder& str(std::string_view text) { return u64(text.size()).raw(text); }
};

// A whole file: prologue, entries, tensors, padding, data. The counts are right unless overridden.
class GgufBuilder {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;   // of the padding in front of the data; says nothing by itself
  std::string data;               // all tensor data
  std::int64_t entry_count = -1;  // -1: as many as were added
  std::int64_t tensor_count = -1;

  // `value`: the encoded value after the type.
  GgufBuilder& entry(std::string_view key, std::uint32_t type, std::string_view value) {
    entries_.push_back(ByteBuilder{}.str(key).u32(type).raw(value).bytes);
    return *this;
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) {
    return entry(key, 4, ByteBuilder{}.u32(value).bytes);
  }
  GgufBuilder& string(std::string_view key, std::string_view value) {
    return entry(key, 8, ByteBuilder{}.str(value).bytes);
  }
  // Anything in the place of an entry; counts as one.
  GgufBuilder& raw_entry(std::string bytes) {
    entries_.push_back(std::move(bytes));
    return *this;
  }
  // rank < 0: the number of `dims`.
  GgufBuilder& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t format,
                      std::uint64_t offset, std::int64_t rank = -1) {
    ByteBuilder out;
    out.str(name).u32(
        static_cast<std::uint64_t>(rank < 0 ? static_cast<std::int64_t>(dims.size()) : rank));
    for (const std::uint64_t dim : dims) out.u64(dim);
    out.u32(format).u64(offset);
    tensors_.push_back(out.bytes);
    return *this;
  }
  // `bytes` of data, different from place to place.
  GgufBuilder& fill_data(std::size_t count) {
    data.resize(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<char>(i * 7 + 1);
    return *this;
  }

  // Prologue, entries and tensors, without padding.
  std::string header() const {
    ByteBuilder out;
    out.raw(magic).u32(version);
    out.u64(tensor_count < 0 ? tensors_.size() : static_cast<std::uint64_t>(tensor_count));
    out.u64(entry_count < 0 ? entries_.size() : static_cast<std::uint64_t>(entry_count));
    for (const std::string& entry : entries_) out.raw(entry);
    for (const std::string& tensor : tensors_) out.raw(tensor);
    return out.bytes;
  }

  std::string file() const {
    std::string bytes = header();
    while (alignment != 0 && bytes.size() % alignment != 0) bytes += '\0';
    return bytes + data;
  }

 private:
  std::vector<std::string> entries_;
  std::vector<std::string> tensors_;
};

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace lockstep::test
