// Encoding GGUF metadata and laying out tensor data. Offsets are decided before the first byte is
// written, so the file is produced strictly from front to back.
#include "runtime/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "lockstep/error.h"
#include "runtime/checked.h"
#include "runtime/gguf_layout.h"
#include "runtime/output_file.h"
#include "runtime/printable.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kPieceBytes = 1u << 20;

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::internal, "GGUF writer: " + what);
}

// Appends fields to a byte vector as they lie in the file.
class Encoder {
 public:
  explicit Encoder(std::vector<std::byte>& out) : out_(out) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  void put(T value) { put_bytes(std::as_bytes(std::span(&value, 1))); }

  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    put_bytes(std::as_bytes(std::span(text)));
  }

  void put_bytes(std::span<const std::byte> bytes) {
    const std::size_t at = out_.size();
    out_.resize(at + bytes.size());
    if (!bytes.empty()) std::memcpy(out_.data() + at, bytes.data(), bytes.size());
  }

 private:
  std::vector<std::byte>& out_;
};

// One number as `type`, which must be able to hold it.
template <typename Narrow, typename Wide>
void put_number(Encoder& out, Wide value, const std::string& key) {
  if constexpr (std::is_integral_v<Narrow>) {
    if (!std::in_range<Narrow>(value)) {
      fail(fmt::format("key '{}': {} does not fit its type", printable(key), value));
    }
  }
  out.put(static_cast<Narrow>(value));
}

void put_element(Encoder& out, MetadataType type, std::uint64_t value, const std::string& key) {
  switch (type) {
    case MetadataType::u8:
      return put_number<std::uint8_t>(out, value, key);
    case MetadataType::u16:
      return put_number<std::uint16_t>(out, value, key);
    case MetadataType::u32:
      return put_number<std::uint32_t>(out, value, key);
    case MetadataType::u64:
      return put_number<std::uint64_t>(out, value, key);
    case MetadataType::boolean:
      return put_number<std::uint8_t>(out, std::min<std::uint64_t>(value, 1), key);
    default:
      fail(fmt::format("key '{}': an unsigned value as {}", printable(key), name_of(type)));
  }
}

void put_element(Encoder& out, MetadataType type, std::int64_t value, const std::string& key) {
  switch (type) {
    case MetadataType::i8:
      return put_number<std::int8_t>(out, value, key);
    case MetadataType::i16:
      return put_number<std::int16_t>(out, value, key);
    case MetadataType::i32:
      return put_number<std::int32_t>(out, value, key);
    case MetadataType::i64:
      return put_number<std::int64_t>(out, value, key);
    default:
      fail(fmt::format("key '{}': a signed value as {}", printable(key), name_of(type)));
  }
}

void put_element(Encoder& out, MetadataType type, double value, const std::string& key) {
  switch (type) {
    case MetadataType::f32:
      return put_number<float>(out, value, key);
    case MetadataType::f64:
      return put_number<double>(out, value, key);
    default:
      fail(fmt::format("key '{}': a float value as {}", printable(key), name_of(type)));
  }
}

void put_element(Encoder& out, MetadataType type, bool value, const std::string& key) {
  if (type != MetadataType::boolean)
    fail(fmt::format("key '{}': a bool as {}", printable(key), name_of(type)));
  out.put(static_cast<std::uint8_t>(value ? 1 : 0));
}

void put_element(Encoder& out, MetadataType type, const std::string& value,
                 const std::string& key) {
  if (type != MetadataType::string) {
    fail(fmt::format("key '{}': a string as {}", printable(key), name_of(type)));
  }
  out.put(value);
}

template <typename T>
void put_value(Encoder& out, const MetadataValue& value, const T& stored, const std::string& key) {
  if (value.type == MetadataType::array)
    fail(fmt::format("key '{}': a scalar as an array", printable(key)));
  put_element(out, value.type, stored, key);
}

template <typename T>
void put_value(Encoder& out, const MetadataValue& value, const std::vector<T>& stored,
               const std::string& key) {
  if (value.type != MetadataType::array || value.element == MetadataType::array) {
    fail(fmt::format("key '{}': an array as {}", printable(key), name_of(value.type)));
  }
  out.put(static_cast<std::uint32_t>(value.element));
  out.put(std::uint64_t{stored.size()});
  for (const T& element : stored) put_element(out, value.element, element, key);
}

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  const auto up = checked_align(value, alignment);
  if (!up) fail("the file size overflows");
  return *up;
}

MetadataValue array_value(MetadataType element, decltype(MetadataValue::value) values) {
  return {MetadataType::array, element, std::move(values)};
}

void check_name(const std::string& name, const char* what) {
  if (name.empty() || name.size() > kMaxGgufName)
    fail(fmt::format("a {} of {} bytes", what, name.size()));
}

}  // namespace

void GgufWriter::add(std::string key, MetadataValue value) {
  check_name(key, "key");
  if (keys_.contains(key)) fail(fmt::format("key '{}' added twice", printable(key)));
  std::uint64_t alignment = alignment_;
  if (key == "general.alignment") {
    const auto* number = std::get_if<std::uint64_t>(&value.value);
    if (value.type != MetadataType::u32 || number == nullptr ||
        !alignment_problem(*number).empty()) {
      fail("general.alignment must be a u32 and a power of two from 8 to 1048576");
    }
    alignment = *number;
  }
  std::vector<std::byte> encoded;
  Encoder out(encoded);
  out.put(key);
  out.put(static_cast<std::uint32_t>(value.type));
  std::visit([&](const auto& stored) { put_value(out, value, stored, key); }, value.value);
  entries_.insert(entries_.end(), encoded.begin(), encoded.end());
  keys_.insert(std::move(key));
  alignment_ = alignment;
  ++entry_count_;
}

void GgufWriter::add_u32(std::string key, std::uint32_t value) {
  add(std::move(key), {MetadataType::u32, {}, std::uint64_t{value}});
}

void GgufWriter::add_f32(std::string key, float value) {
  add(std::move(key), {MetadataType::f32, {}, double{value}});
}

void GgufWriter::add_bool(std::string key, bool value) {
  add(std::move(key), {MetadataType::boolean, {}, value});
}

void GgufWriter::add_string(std::string key, std::string value) {
  add(std::move(key), {MetadataType::string, {}, std::move(value)});
}

void GgufWriter::add_strings(std::string key, std::vector<std::string> values) {
  add(std::move(key), array_value(MetadataType::string, std::move(values)));
}

void GgufWriter::add_f32s(std::string key, const std::vector<float>& values) {
  add(std::move(key),
      array_value(MetadataType::f32, std::vector<double>(values.begin(), values.end())));
}

void GgufWriter::add_i32s(std::string key, const std::vector<std::int32_t>& values) {
  add(std::move(key),
      array_value(MetadataType::i32, std::vector<std::int64_t>(values.begin(), values.end())));
}

void GgufWriter::append_tensor(std::string name, quant::Format format,
                               std::vector<std::uint64_t> dims, Fill fill) {
  check_name(name, "tensor name");
  const quant::FormatTraits& traits = quant::traits(format);
  if (dims.empty() || dims.size() > kMaxGgufRank) {
    fail(fmt::format("tensor '{}' has {} dimensions", printable(name), dims.size()));
  }
  if (dims[0] % traits.block_values != 0) {
    fail(fmt::format(
        "tensor '{}': rows of {} values are no multiple of the block of {} values of {}",
        printable(name), dims[0], traits.block_values, traits.name));
  }
  const auto size = tensor_size(traits, dims);
  if (!size) fail(fmt::format("tensor '{}': the size overflows", printable(name)));
  if (!tensor_names_.insert(name).second)
    fail(fmt::format("tensor '{}' added twice", printable(name)));
  tensors_.push_back({std::move(name), format, std::move(dims), size->bytes, std::move(fill)});
}

void GgufWriter::add_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims,
                            Fill fill) {
  if (!fill) fail(fmt::format("tensor '{}' has no source", printable(name)));
  append_tensor(std::move(name), format, std::move(dims), std::move(fill));
}

void GgufWriter::add_tensor(std::string name, quant::Format format,
                            std::vector<std::uint64_t> dims) {
  append_tensor(std::move(name), format, std::move(dims), nullptr);
}

void GgufWriter::add_tensor(std::string name, quant::Format format, std::vector<std::uint64_t> dims,
                            std::span<const std::byte> bytes) {
  // Fill must be copyable, and a copy of it must not copy the data.
  const auto data = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  const Fill fill = [data](std::uint64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), data->data() + offset, into.size());
  };
  add_tensor(std::move(name), format, std::move(dims), fill);
  const Tensor& added = tensors_.back();
  if (added.bytes != bytes.size()) {
    const std::string problem = fmt::format("tensor '{}' needs {} bytes and was given {}",
                                            printable(added.name), added.bytes, bytes.size());
    tensor_names_.erase(added.name);
    tensors_.pop_back();
    fail(problem);
  }
}

std::vector<std::byte> GgufWriter::header() const {
  std::vector<std::byte> bytes;
  Encoder out(bytes);
  for (const char c : {'G', 'G', 'U', 'F'}) out.put(c);
  out.put(std::uint32_t{3});
  out.put(std::uint64_t{tensors_.size()});
  out.put(entry_count_);
  out.put_bytes(entries_);
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    out.put(tensor.name);
    out.put(static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) out.put(dim);
    out.put(static_cast<std::uint32_t>(tensor.format));
    out.put(offset);
    offset += aligned(tensor.bytes, alignment_);
  }
  bytes.resize(aligned(bytes.size(), alignment_));
  return bytes;
}

std::uint64_t GgufWriter::file_bytes() const {
  std::optional<std::uint64_t> total = header().size();
  for (const Tensor& tensor : tensors_) {
    if (total) total = checked_add(*total, aligned(tensor.bytes, alignment_));
  }
  if (!total) fail("the file size overflows");
  return *total;
}

std::vector<std::uint64_t> GgufWriter::tensor_offsets() const {
  file_bytes();  // refuses what overflows
  std::vector<std::uint64_t> offsets;
  std::uint64_t offset = header().size();
  for (const Tensor& tensor : tensors_) {
    offsets.push_back(offset);
    offset += aligned(tensor.bytes, alignment_);
  }
  return offsets;
}

void GgufWriter::write(const std::filesystem::path& path) const {
  file_bytes();  // refuses what overflows
  for (const Tensor& tensor : tensors_) {
    if (!tensor.fill) fail(fmt::format("tensor '{}' has no source", printable(tensor.name)));
  }
  OutputFile out(path);
  out.append(header());
  std::vector<std::byte> piece;
  for (const Tensor& tensor : tensors_) {
    const std::uint64_t block = quant::traits(tensor.format).block_bytes;
    const std::uint64_t step = kPieceBytes / block * block;
    for (std::uint64_t offset = 0; offset < tensor.bytes; offset += step) {
      piece.resize(std::min(step, tensor.bytes - offset));
      tensor.fill(offset, piece);
      out.append(piece);
    }
    // The public tools pad the last tensor too, and expect it.
    piece.assign(aligned(tensor.bytes, alignment_) - tensor.bytes, std::byte{0});
    out.append(piece);
  }
  out.commit();
}

}  // namespace lockstep
