// An opened GGUF file: typed access to its metadata, and reading tensor bytes. How the header is
// read and checked is the business of gguf_parser.cpp.
#include "runtime/gguf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "lockstep/error.h"
#include "runtime/file_window.h"
#include "runtime/gguf_parser.h"
#include "runtime/printable.h"

namespace lockstep {

namespace {

std::string label(const std::filesystem::path& path) { return printable(path.string(), 4096); }

// "a string", "an array of i32": what a value is, for messages.
std::string describe(const MetadataValue& value) {
  if (value.type == MetadataType::array)
    return fmt::format("an array of {}", name_of(value.element));
  return fmt::format("of type {}", name_of(value.type));
}

[[noreturn]] void wrong_type(const GgufFile& file, std::string_view key, const MetadataValue& value,
                             std::string_view expected) {
  file.refuse(fmt::format("metadata key '{}' is {}, expected {}", printable(key), describe(value),
                          expected));
}

template <typename T>
T required(const GgufFile& file, std::string_view key, std::optional<T> value) {
  if (!value) file.refuse(fmt::format("metadata key '{}' is missing", printable(key)));
  return std::move(*value);
}

template <typename Stored>
const Stored* array_of(const GgufFile& file, std::string_view key, std::string_view expected) {
  const MetadataValue* value = file.find(key);
  if (value == nullptr) return nullptr;
  const auto* stored = std::get_if<Stored>(&value->value);
  if (stored == nullptr) wrong_type(file, key, *value, expected);
  return stored;
}

}  // namespace

std::string shape_text(const std::vector<std::uint64_t>& dims) {
  std::string text = "[";
  for (std::size_t i = dims.size(); i-- > 0;) text += std::to_string(dims[i]) + (i ? ", " : "");
  return text + "]";
}

std::string_view name_of(MetadataType type) noexcept {
  static constexpr std::string_view kNames[] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                "i32", "f32", "bool", "string", "array",
                                                "u64", "i64", "f64"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile file;
  file.path_ = path;
  // Without O_NONBLOCK a named pipe would block for ever.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &status) != 0) {
    throw Error(ErrorCode::no_input, fmt::format("{}: cannot be opened: {}", label(path),
                                                 std::generic_category().message(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::no_input, fmt::format("{}: not a regular file", label(path)));
  }
  file.file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  try {
    GgufParser(file, false).run();
    GgufParser(file, true).run();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::no_resource,
                fmt::format("{}: not enough memory for its header", label(path)));
  }
  return file;
}

GgufFile::GgufFile(GgufFile&& other) noexcept { *this = std::move(other); }

GgufFile& GgufFile::operator=(GgufFile&& other) noexcept {
  if (this == &other) return *this;
  path_ = std::move(other.path_);
  std::swap(descriptor_, other.descriptor_);
  version_ = other.version_;
  alignment_ = other.alignment_;
  file_bytes_ = other.file_bytes_;
  data_offset_ = other.data_offset_;
  metadata_ = std::move(other.metadata_);
  tensors_ = std::move(other.tensors_);
  metadata_index_ = std::move(other.metadata_index_);
  tensor_index_ = std::move(other.tensor_index_);
  return *this;
}

GgufFile::~GgufFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

const MetadataValue* GgufFile::find(std::string_view key) const noexcept {
  const auto found = metadata_index_.find(std::string(key));
  return found == metadata_index_.end() ? nullptr : &metadata_[found->second].value;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const noexcept {
  const auto found = tensor_index_.find(std::string(name));
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

std::uint32_t GgufFile::require_u32(std::string_view key) const {
  return required(*this, key, u32(key));
}

float GgufFile::require_f32(std::string_view key) const { return required(*this, key, f32(key)); }

const std::string& GgufFile::require_string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) refuse(fmt::format("metadata key '{}' is missing", printable(key)));
  const auto* text = std::get_if<std::string>(&value->value);
  if (text == nullptr) wrong_type(*this, key, *value, "a string");
  return *text;
}

std::optional<std::uint32_t> GgufFile::u32(std::string_view key) const {
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::uint64_t>(&value->value)) {
    if (*number <= kMax) return static_cast<std::uint32_t>(*number);
    refuse(fmt::format("metadata key '{}' is {}, the largest allowed is {}", printable(key),
                       *number, kMax));
  }
  if (const auto* number = std::get_if<std::int64_t>(&value->value)) {
    if (*number >= 0 && *number <= std::int64_t{kMax}) return static_cast<std::uint32_t>(*number);
    refuse(fmt::format("metadata key '{}' is {}, expected 0 to {}", printable(key), *number, kMax));
  }
  wrong_type(*this, key, *value, "an integer");
}

std::optional<float> GgufFile::f32(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<double>(&value->value);
  if (number == nullptr) wrong_type(*this, key, *value, "a floating-point number");
  if (!(std::abs(*number) <= double{std::numeric_limits<float>::max()})) {
    refuse(fmt::format("metadata key '{}' is {}, no finite f32", printable(key), *number));
  }
  return static_cast<float>(*number);
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(&value->value);
  if (flag == nullptr) wrong_type(*this, key, *value, "a bool");
  return *flag;
}

std::optional<std::string> GgufFile::string(std::string_view key) const {
  if (find(key) == nullptr) return std::nullopt;
  return require_string(key);
}

const std::vector<std::string>* GgufFile::strings(std::string_view key) const {
  return array_of<std::vector<std::string>>(*this, key, "an array of strings");
}

const std::vector<double>* GgufFile::floats(std::string_view key) const {
  return array_of<std::vector<double>>(*this, key, "an array of floating-point numbers");
}

std::optional<std::vector<std::int32_t>> GgufFile::integers(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::int32_t> out;
  const auto append = [&](const auto& numbers) {
    out.reserve(numbers.size());
    for (const auto number : numbers) {
      if (!std::in_range<std::int32_t>(number)) {
        refuse(fmt::format("metadata key '{}' holds {} at index {}, expected 32-bit integers",
                           printable(key), number, out.size()));
      }
      out.push_back(static_cast<std::int32_t>(number));
    }
  };
  const auto* wide = std::get_if<std::vector<std::uint64_t>>(&value->value);
  if (wide != nullptr && value->element != MetadataType::boolean) {
    append(*wide);
  } else if (const auto* negative = std::get_if<std::vector<std::int64_t>>(&value->value)) {
    append(*negative);
  } else {
    wrong_type(*this, key, *value, "an array of integers");
  }
  return out;
}

void GgufFile::read(const GgufTensor& tensor, std::uint64_t offset,
                    std::span<std::byte> into) const {
  if (offset > tensor.bytes || into.size() > tensor.bytes - offset) {
    throw Error(
        ErrorCode::internal,
        fmt::format("{}: reading {} bytes at {} of tensor '{}', which has {} bytes", label(path_),
                    into.size(), offset, printable(tensor.name), tensor.bytes));
  }
  read_fully(descriptor_, tensor.offset + offset, into, path_);
}

void GgufFile::refuse(const std::string& what) const {
  throw Error(ErrorCode::bad_model, label(path_) + ": " + what);
}

}  // namespace lockstep
