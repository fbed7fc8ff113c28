// See line_reader.h.
#include "runtime/batch/line_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::batch {

namespace {
constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
}

LineReader::LineReader(int descriptor, std::uint64_t size, std::size_t max_line,
                       std::filesystem::path path)
    : descriptor_(descriptor),
      size_(size),
      max_line_(max_line),
      path_(std::move(path)),
      buffer_(kBufferBytes) {}

void LineReader::seek(std::uint64_t offset, std::size_t number) {
  begin_ = end_ = 0;
  read_offset_ = offset;
  next_number_ = number;
}

bool LineReader::fill() {
  const std::uint64_t left = size_ > read_offset_ ? size_ - read_offset_ : 0;
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer_.size()));
  begin_ = end_ = 0;
  if (want == 0) return false;
  ssize_t got = 0;
  do {
    got = ::pread(descriptor_, buffer_.data(), want, static_cast<off_t>(read_offset_));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot read: {}", path_.string(), std::strerror(errno)));
  }
  end_ = static_cast<std::size_t>(got);
  if (hash_) hash_->add(read_offset_, std::as_bytes(std::span(buffer_.data(), end_)));
  read_offset_ += end_;
  return end_ != 0;  // 0: the file was cut after it was opened
}

bool LineReader::next(Line& line) {
  line.text.clear();
  line.too_long = false;
  line.ended = false;
  line.number = next_number_;
  line.offset = read_offset_ - (end_ - begin_);
  bool any = false;
  while (!line.ended) {
    if (begin_ == end_ && !fill()) break;
    any = true;
    const char* first = buffer_.data() + begin_;
    const void* newline = std::memchr(first, '\n', end_ - begin_);
    const std::size_t length =
        newline ? static_cast<std::size_t>(static_cast<const char*>(newline) - first)
                : end_ - begin_;
    line.too_long = line.too_long || line.text.size() + length > max_line_;
    if (line.too_long) {
      line.text.clear();
    } else {
      line.text.append(first, length);
    }
    begin_ += length + (newline ? 1 : 0);
    line.ended = newline != nullptr;
  }
  if (any) ++next_number_;
  return any;
}

}  // namespace lockstep::batch
