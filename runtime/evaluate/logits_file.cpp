// See logits_file.h. Every extent is checked against the real length before memory is taken for it.
#include "runtime/evaluate/logits_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/error.h"
#include "runtime/file_window.h"
#include "runtime/printable.h"

namespace lockstep::evaluate {

namespace {

constexpr std::array<char, 8> kMagic = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr std::array<char, 8> kNllMagic = {'_', 't', 'o', 'k', 'e', 'n', 's', '_'};
constexpr std::size_t kHeaderBytes = kMagic.size() + 3 * sizeof(std::int32_t);
constexpr std::size_t kMaxExtent = std::size_t{1} << 26;  // keeps products within 64 bits

}  // namespace

PackedLogProbs load_row(std::span<std::uint16_t> row, std::size_t vocabulary) noexcept {
  PackedLogProbs packed;
  std::memcpy(&packed.step, row.data(), sizeof(float));
  std::memcpy(&packed.lowest, row.data() + 2, sizeof(float));
  packed.codes = row.subspan(4, vocabulary);
  return packed;
}

void store_row(const PackedLogProbs& packed, std::span<std::uint16_t> row) noexcept {
  std::memcpy(row.data(), &packed.step, sizeof(float));
  std::memcpy(row.data() + 2, &packed.lowest, sizeof(float));
  if (packed.codes.size() % 2 != 0) row[4 + packed.codes.size()] = 0;
}

LogitsWriter::LogitsWriter(const std::filesystem::path& path, const LogitsHeader& header,
                           std::span<const TokenId> tokens)
    : file_(path) {
  const std::int32_t extents[] = {static_cast<std::int32_t>(header.context),
                                  static_cast<std::int32_t>(header.vocabulary),
                                  static_cast<std::int32_t>(header.chunks)};
  file_.append(std::as_bytes(std::span(kMagic)));
  file_.append(std::as_bytes(std::span(extents)));
  file_.append(std::as_bytes(tokens));
}

void LogitsWriter::append(std::span<const std::uint16_t> rows, std::span<const TokenScore> scores) {
  file_.append(std::as_bytes(rows));
  for (const TokenScore& score : scores) nll_.push_back(score.nll);
}

void LogitsWriter::commit() {
  file_.append(std::as_bytes(std::span(kNllMagic)));
  file_.append(std::as_bytes(std::span(nll_)));
  file_.commit();
}

LogitsReader::LogitsReader(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error(ErrorCode::no_input, printable(path_.string(), 4096) + ": cannot be opened: " +
                                         std::generic_category().message(errno));
  }
  try {
    read_header();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

void LogitsReader::read_header() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse("is not a regular file");
  }
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, kHeaderBytes> head{};
  if (file_bytes < head.size()) refuse("is too short for a file of saved logits");
  read_fully(descriptor_, 0, head, path_);
  if (std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse("is no file of saved logits; make one with perplexity --save-logits");
  }
  std::array<std::uint32_t, 3> extents{};
  std::memcpy(extents.data(), head.data() + kMagic.size(), sizeof extents);
  header_ = {extents[0], extents[1], extents[2]};
  for (const std::uint32_t extent : extents) {
    if (extent < 1 || extent > kMaxExtent) refuse("has an impossible header");
  }
  if (header_.context < 4) refuse("has an impossible header");
  const std::uint64_t rows = std::uint64_t{header_.chunks} * header_.scored_per_chunk();
  const std::uint64_t row_bytes = std::uint64_t{header_.row_fields()} * sizeof(std::uint16_t);
  const std::uint64_t nll_bytes = kNllMagic.size() + rows * sizeof(double);
  data_offset_ = kHeaderBytes + std::uint64_t{header_.chunks} * header_.context * sizeof(TokenId);
  // Extents are bounded: neither product overflows, but rows * row_bytes could.
  const std::uint64_t rest = file_bytes < data_offset_ ? 0 : file_bytes - data_offset_;
  const bool has_rows = rest / row_bytes >= rows;
  const std::uint64_t after = has_rows ? rest - rows * row_bytes : 0;
  if (!has_rows || (after != 0 && after != nll_bytes)) {
    refuse("has " + std::to_string(file_bytes) + " bytes, not what its header promises (" +
           std::to_string(header_.chunks) + " chunks of " + std::to_string(header_.context) +
           " tokens, vocabulary " + std::to_string(header_.vocabulary) + "); it is damaged");
  }
  tokens_.resize(header_.chunks * header_.context);
  read_fully(descriptor_, kHeaderBytes, std::as_writable_bytes(std::span(tokens_)), path_);
  for (const TokenId token : tokens_) {
    if (token < 0 || static_cast<std::size_t>(token) >= header_.vocabulary) {
      refuse("holds token " + std::to_string(token) + ", which is not in its vocabulary of " +
             std::to_string(header_.vocabulary));
    }
  }
  if (after != 0) read_nll(data_offset_ + rows * row_bytes);
}

void LogitsReader::read_nll(std::uint64_t offset) {
  std::array<char, kNllMagic.size()> magic{};
  read_fully(descriptor_, offset, std::as_writable_bytes(std::span(magic)), path_);
  nll_.resize(header_.chunks * header_.scored_per_chunk());
  read_fully(descriptor_, offset + magic.size(), std::as_writable_bytes(std::span(nll_)), path_);
  for (const double value : nll_) {
    if (magic != kNllMagic || !std::isfinite(value)) refuse("is damaged at its end");
  }
}

LogitsReader::~LogitsReader() { ::close(descriptor_); }

void LogitsReader::refuse(const std::string& what) const {
  throw Error(ErrorCode::bad_input, printable(path_.string(), 4096) + ": " + what);
}

void LogitsReader::read(std::size_t chunk, std::size_t position,
                        std::span<std::uint16_t> into) const {
  const std::uint64_t row = std::uint64_t{chunk} * header_.scored_per_chunk() + position;
  read_fully(descriptor_, data_offset_ + row * header_.row_fields() * sizeof(std::uint16_t),
             std::as_writable_bytes(into), path_);
}

}  // namespace lockstep::evaluate
