// Every number of a header is distrusted until it has been compared with the bytes that are really
// there. The order inside each function is: read, check, and only then allocate or move on.
#include "runtime/gguf_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/checked.h"
#include "runtime/printable.h"

namespace lockstep {

namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
// The smallest entry: key of one byte, type, one byte of value. The smallest tensor: name of one
// byte, rank, one dimension, format, offset.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kMinStringBytes = 8;
constexpr std::uint64_t kChunkValues = 4096;

std::uint32_t byte_swapped(std::uint32_t v) noexcept {
  return v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24;
}

bool is_known(std::uint32_t type) noexcept {
  return type <= static_cast<std::uint32_t>(MetadataType::f64);
}

}  // namespace

GgufParser::GgufParser(GgufFile& file, bool keep)
    : file_(file), in_(file.descriptor_, file.file_bytes_, file.path_), keep_(keep) {}

void GgufParser::run() {
  prologue();
  entries();
  tensors();
  regions();
}

void GgufParser::fail(const std::string& what, std::uint64_t at) const {
  file_.refuse(fmt::format("{} (at byte {})", what, at));
}

template <typename T>
T GgufParser::take(const char* what) {
  if (in_.remaining() < sizeof(T)) {
    fail(
        fmt::format("the file ends inside {}: {} of {} bytes is cut off; is the download complete?",
                    where_, what, sizeof(T)),
        in_.position());
  }
  return in_.read<T>();
}

void GgufParser::prologue() {
  where_ = "the file header";
  if (in_.remaining() == 0) fail("the file is empty", 0);
  const auto magic = take<std::uint32_t>("the magic number");
  if (magic != kMagic) {
    const std::string_view bytes(reinterpret_cast<const char*>(&magic), sizeof(magic));
    fail(fmt::format("not a GGUF file: begins with '{}'", printable(bytes)), 0);
  }
  const auto version = take<std::uint32_t>("the version");
  const std::uint32_t swapped = byte_swapped(version);
  if (version > 3 && swapped >= 1 && swapped <= 3) {
    fail("the byte order differs: this is a big-endian file; convert it to little endian", 4);
  }
  if (version == 1) fail("GGUF version 1 is not supported; convert the model again", 4);
  if (version != 2 && version != 3) {
    fail(fmt::format("GGUF version {} is not known; versions 2 and 3 are", version), 4);
  }
  tensor_count_ = take<std::uint64_t>("the tensor count");
  entry_count_ = take<std::uint64_t>("the metadata count");
  const auto bounded = [&](std::uint64_t count, std::uint64_t smallest, std::uint64_t limit,
                           const char* what, std::uint64_t at) {
    if (count > in_.remaining() / smallest) {
      fail(fmt::format("claims {} {}, but only {} bytes follow", count, what, in_.remaining()), at);
    }
    if (count > limit)
      fail(fmt::format("claims {} {}; at most {} are read", count, what, limit), at);
  };
  bounded(tensor_count_, kMinTensorBytes, kMaxGgufTensors, "tensors", 8);
  bounded(entry_count_, kMinEntryBytes, kMaxGgufEntries, "metadata entries", 16);
  if (keep_) file_.version_ = version;
}

void GgufParser::entries() {
  if (keep_) file_.metadata_.reserve(entry_count_);
  key_marks_.reserve(entry_count_);
  for (std::uint64_t i = 0; i < entry_count_; ++i) entry(i);
  no_duplicates(key_marks_, "metadata key");
  if (!keep_) return;
  file_.alignment_ = alignment_;
  for (std::size_t i = 0; i < file_.metadata_.size(); ++i) {
    file_.metadata_index_.emplace(file_.metadata_[i].key, i);
  }
}

void GgufParser::entry(std::uint64_t index) {
  where_ = fmt::format("the key of metadata entry {} of {}", index + 1, entry_count_);
  const std::uint64_t at = in_.position();
  std::string key = name();
  note_name(key_marks_, key, at);
  where_ = fmt::format("metadata key '{}'", printable(key));
  charge(1, sizeof(MetadataEntry) + 2 * key.size());
  const std::uint64_t value_at = in_.position() + sizeof(std::uint32_t);
  MetadataValue read = value(type("the value type"));
  special_entry(key, read, value_at);
  if (keep_) file_.metadata_.push_back({std::move(key), std::move(read)});
}

// The two keys that change how the rest of the file is to be read.
void GgufParser::special_entry(const std::string& key, const MetadataValue& value,
                               std::uint64_t at) {
  if (key == "general.alignment") {
    if (value.type != MetadataType::u32) {
      fail(fmt::format("{} has type {}, it must be u32", where_, name_of(value.type)), at);
    }
    alignment_ = std::get<std::uint64_t>(value.value);
    const std::string_view problem = alignment_problem(alignment_);
    if (!problem.empty()) {
      fail(fmt::format("{}: {} {}; powers of two from 8 to 1048576 are allowed", where_, alignment_,
                       problem),
           at);
    }
  } else if (key == "split.count") {
    const auto* count = std::get_if<std::uint64_t>(&value.value);
    if (count == nullptr) {
      fail(fmt::format("{} has type {}, it must be an unsigned integer", where_,
                       name_of(value.type)),
           at);
    }
    if (*count > 1) {
      fail(fmt::format("{} is {}: the model is split over several files, which is not supported; "
                       "merge them into one",
                       where_, *count),
           at);
    }
  }
}

MetadataType GgufParser::type(const char* what) {
  const std::uint64_t at = in_.position();
  const auto id = take<std::uint32_t>(what);
  if (!is_known(id)) fail(fmt::format("{}: {} {} is not known", where_, what, id), at);
  return static_cast<MetadataType>(id);
}

MetadataValue GgufParser::value(MetadataType type) {
  if (type == MetadataType::array) return array();
  return scalar(type);
}

MetadataValue GgufParser::scalar(MetadataType type) {
  MetadataValue out;
  out.type = type;
  const char* what = "the value";
  switch (type) {
    case MetadataType::u8:
      out.value = std::uint64_t{take<std::uint8_t>(what)};
      break;
    case MetadataType::u16:
      out.value = std::uint64_t{take<std::uint16_t>(what)};
      break;
    case MetadataType::u32:
      out.value = std::uint64_t{take<std::uint32_t>(what)};
      break;
    case MetadataType::u64:
      out.value = take<std::uint64_t>(what);
      break;
    case MetadataType::i8:
      out.value = std::int64_t{take<std::int8_t>(what)};
      break;
    case MetadataType::i16:
      out.value = std::int64_t{take<std::int16_t>(what)};
      break;
    case MetadataType::i32:
      out.value = std::int64_t{take<std::int32_t>(what)};
      break;
    case MetadataType::i64:
      out.value = take<std::int64_t>(what);
      break;
    case MetadataType::f32:
      out.value = double{take<float>(what)};
      break;
    case MetadataType::f64:
      out.value = take<double>(what);
      break;
    case MetadataType::boolean:
      out.value = boolean();
      break;
    case MetadataType::string:
      out.value = text();
      break;
    case MetadataType::array:
      break;  // not a scalar: value() went another way
  }
  return out;
}

bool GgufParser::boolean() {
  const std::uint64_t at = in_.position();
  const auto byte = take<std::uint8_t>("a boolean");
  if (byte > 1) fail(fmt::format("{}: a boolean is {}, it must be 0 or 1", where_, byte), at);
  return byte == 1;
}

MetadataValue GgufParser::array() {
  MetadataValue out;
  out.type = MetadataType::array;
  const std::uint64_t at = in_.position();
  out.element = type("the array element type");
  if (out.element == MetadataType::array) {
    fail(fmt::format("{}: arrays of arrays are not supported", where_), at);
  }
  const auto count = take<std::uint64_t>("the array length");
  const bool of_strings = out.element == MetadataType::string;
  const std::uint64_t smallest = of_strings ? kMinStringBytes : bytes_of(out.element);
  if (count > in_.remaining() / smallest) {
    fail(fmt::format("{}: an array of {} {} values does not fit into the remaining {} bytes",
                     where_, count, name_of(out.element), in_.remaining()),
         at + sizeof(std::uint32_t));
  }
  charge(count, of_strings ? sizeof(std::string) : sizeof(std::uint64_t));
  switch (out.element) {
    case MetadataType::u8:
      out.value = numbers<std::uint64_t, std::uint8_t>(count);
      break;
    case MetadataType::u16:
      out.value = numbers<std::uint64_t, std::uint16_t>(count);
      break;
    case MetadataType::u32:
      out.value = numbers<std::uint64_t, std::uint32_t>(count);
      break;
    case MetadataType::u64:
      out.value = numbers<std::uint64_t, std::uint64_t>(count);
      break;
    case MetadataType::i8:
      out.value = numbers<std::int64_t, std::int8_t>(count);
      break;
    case MetadataType::i16:
      out.value = numbers<std::int64_t, std::int16_t>(count);
      break;
    case MetadataType::i32:
      out.value = numbers<std::int64_t, std::int32_t>(count);
      break;
    case MetadataType::i64:
      out.value = numbers<std::int64_t, std::int64_t>(count);
      break;
    case MetadataType::f32:
      out.value = numbers<double, float>(count);
      break;
    case MetadataType::f64:
      out.value = numbers<double, double>(count);
      break;
    case MetadataType::boolean:
      out.value = booleans(count);
      break;
    case MetadataType::string:
      out.value = strings(count);
      break;
    case MetadataType::array:
      break;  // refused above
  }
  return out;
}

// array() has compared `count` with the bytes that follow.
template <typename Wide, typename Narrow>
std::vector<Wide> GgufParser::numbers(std::uint64_t count) {
  std::vector<Wide> out;
  if (!keep_) {
    in_.skip(count * sizeof(Narrow));
    return out;
  }
  out.reserve(count);
  Narrow chunk[kChunkValues];
  while (count > 0) {
    const std::uint64_t part = std::min(count, kChunkValues);
    in_.read(chunk, part * sizeof(Narrow));
    out.insert(out.end(), chunk, chunk + part);
    count -= part;
  }
  return out;
}

std::vector<std::uint64_t> GgufParser::booleans(std::uint64_t count) {
  std::vector<std::uint64_t> out;
  if (keep_) out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool value = boolean();
    if (keep_) out.push_back(value ? 1 : 0);
  }
  return out;
}

std::vector<std::string> GgufParser::strings(std::uint64_t count) {
  std::vector<std::string> out;
  if (keep_) out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string element = text();
    if (keep_) out.push_back(std::move(element));
  }
  return out;
}

std::string GgufParser::text() {
  const std::uint64_t at = in_.position();
  const auto length = take<std::uint64_t>("a string length");
  if (length > in_.remaining()) {
    fail(fmt::format("{}: a string of {} bytes does not fit into the remaining {} bytes", where_,
                     length, in_.remaining()),
         at);
  }
  charge(length, 1);
  std::string out;
  if (keep_) {
    out.resize(length);
    in_.read(out.data(), length);
  } else {
    in_.skip(length);
  }
  return out;
}

std::string GgufParser::name() {
  const std::uint64_t at = in_.position();
  const auto length = take<std::uint64_t>("the name length");
  if (length == 0) fail(fmt::format("{} is empty", where_), at);
  if (length > in_.remaining()) {
    fail(fmt::format("{}: a name of {} bytes does not fit into the remaining {} bytes", where_,
                     length, in_.remaining()),
         at);
  }
  if (length > kMaxGgufName) {
    fail(
        fmt::format("{}: a name of {} bytes; at most {} are allowed", where_, length, kMaxGgufName),
        at);
  }
  std::string out(length, '\0');
  in_.read(out.data(), length);
  return out;
}

std::string GgufParser::name_at(std::uint64_t position) {
  in_.seek(position);
  return printable(name());
}

void GgufParser::charge(std::uint64_t count, std::uint64_t bytes_each) {
  if (count > (kMaxGgufHeader - kept_bytes_) / bytes_each) {
    fail(fmt::format("{}: the header would take more than {} MiB of memory", where_,
                     kMaxGgufHeader >> 20),
         in_.position());
  }
  kept_bytes_ += count * bytes_each;
}

void GgufParser::note_name(std::vector<NameMark>& marks, std::string_view name,
                           std::uint64_t position) const {
  marks.push_back({std::hash<std::string_view>{}(name), position});
}

// Two names with one 64-bit hash count as duplicates: by accident that never happens, and a file
// made to do it has no claim on being read.
void GgufParser::no_duplicates(std::vector<NameMark>& marks, const char* what) {
  std::sort(marks.begin(), marks.end(), [](const NameMark& a, const NameMark& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.position < b.position;
  });
  const auto twin =
      std::adjacent_find(marks.begin(), marks.end(),
                         [](const NameMark& a, const NameMark& b) { return a.hash == b.hash; });
  if (twin == marks.end()) return;
  const std::uint64_t first = twin[0].position;
  fail(fmt::format("{} '{}' appears twice, first at byte {}", what, name_at(first), first),
       twin[1].position);
}

void GgufParser::tensors() {
  if (keep_) file_.tensors_.reserve(tensor_count_);
  tensor_marks_.reserve(tensor_count_);
  regions_.reserve(tensor_count_);
  for (std::uint64_t i = 0; i < tensor_count_; ++i) tensor(i);
  const std::uint64_t end = in_.position();
  no_duplicates(tensor_marks_, "tensor");
  in_.seek(end);
}

void GgufParser::tensor(std::uint64_t index) {
  where_ = fmt::format("the name of tensor {} of {}", index + 1, tensor_count_);
  const std::uint64_t at = in_.position();
  GgufTensor tensor;
  tensor.name = name();
  note_name(tensor_marks_, tensor.name, at);
  where_ = fmt::format("tensor '{}'", printable(tensor.name));
  const std::uint64_t rank_at = in_.position();
  const auto rank = take<std::uint32_t>("the number of dimensions");
  if (rank == 0 || rank > kMaxGgufRank) {
    fail(fmt::format("{} has {} dimensions; 1 to {} are supported", where_, rank, kMaxGgufRank),
         rank_at);
  }
  charge(1, sizeof(GgufTensor) + 2 * tensor.name.size() + rank * sizeof(std::uint64_t));
  tensor.dims.resize(rank);
  for (std::uint64_t& dim : tensor.dims) dim = take<std::uint64_t>("a dimension");
  const std::uint64_t format_at = in_.position();
  const auto format = take<std::uint32_t>("the format");
  tensor.format = quant::find_format(format);
  if (tensor.format == nullptr) {
    fail(fmt::format("{} has format id {}, which is not known", where_, format), format_at);
  }
  sizes(tensor, rank_at);
  tensor.offset = take<std::uint64_t>("the offset");
  regions_.push_back({at, tensor.offset, tensor.bytes});
  if (keep_) file_.tensors_.push_back(std::move(tensor));
}

void GgufParser::sizes(GgufTensor& tensor, std::uint64_t at) {
  const quant::FormatTraits& format = *tensor.format;
  if (tensor.dims[0] % format.block_values != 0) {
    fail(fmt::format("{}: rows of {} values are no multiple of the block of {} values of {}",
                     where_, tensor.dims[0], format.block_values, format.name),
         at);
  }
  const auto size = tensor_size(format, tensor.dims);
  if (!size) {
    fail(fmt::format("{}: the size {} in {} overflows", where_, fmt::join(tensor.dims, " x "),
                     format.name),
         at);
  }
  tensor.elements = size->elements;
  tensor.bytes = size->bytes;
}

// Tensor data must lie in the file, aligned, in the order of the tensors and without overlap. A
// tensor whose bytes are also its neighbour's would load, and compute garbage.
void GgufParser::regions() {
  const auto data = checked_align(in_.position(), alignment_);
  if (!data) fail("the start of the tensor data overflows", in_.position());
  std::uint64_t end_before = 0;  // of the tensors so far, from the start of the data
  std::uint64_t position_before = 0;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    const auto refuse = [&](const std::string& what) {
      fail(fmt::format("tensor '{}' {}", name_at(region.name_position), what),
           region.name_position);
    };
    if (region.offset % alignment_ != 0) {
      refuse(fmt::format("has offset {}, which is no multiple of the alignment {}", region.offset,
                         alignment_));
    }
    if (region.offset < end_before) {
      refuse(
          fmt::format("has offset {}, but tensor '{}' before it needs the data up to {}: regions "
                      "overlap or are out of order",
                      region.offset, name_at(position_before), end_before));
    }
    const auto start = checked_add(*data, region.offset);
    const auto end = start ? checked_add(*start, region.bytes) : std::nullopt;
    if (!end) refuse(fmt::format("has offset {}, which overflows", region.offset));
    if (region.bytes > 0 && *end > file_.file_bytes_) {
      refuse(
          fmt::format("ends at byte {}, but the file has only {} bytes; is the download complete?",
                      *end, file_.file_bytes_));
    }
    end_before = region.offset + region.bytes;
    position_before = region.name_position;
    if (keep_) {
      file_.tensors_[i].offset = *start;
      file_.tensor_index_.emplace(file_.tensors_[i].name, i);
    }
  }
  if (keep_) file_.data_offset_ = *data;
}

}  // namespace lockstep
