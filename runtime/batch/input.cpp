// The line reader, over pread so that a second pass needs no second descriptor.
#include "runtime/batch/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::batch {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path), buffer_(kBufferBytes) {
  // O_NONBLOCK: a named pipe without a writer must be refused, not waited for.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    throw Error(ErrorCode::no_input,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorCode::no_input,
                fmt::format("{}: not a regular file (the input is read twice)", path.string()));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::seek(std::uint64_t offset, std::size_t number) {
  begin_ = end_ = 0;
  read_offset_ = offset;
  next_number_ = number;
}

bool InputFile::fill() {
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
  read_offset_ += end_;
  return end_ != 0;  // 0: the file was cut after it was opened
}

bool InputFile::read_line(InputLine& line) {
  line.text.clear();
  line.too_long = false;
  line.number = next_number_;
  line.offset = read_offset_ - (end_ - begin_);
  bool any = false;
  for (;;) {
    if (begin_ == end_ && !fill()) break;
    any = true;
    const char* first = buffer_.data() + begin_;
    const void* newline = std::memchr(first, '\n', end_ - begin_);
    const std::size_t length =
        newline ? static_cast<std::size_t>(static_cast<const char*>(newline) - first)
                : end_ - begin_;
    line.too_long = line.too_long || line.text.size() + length > kMaxLine;
    if (line.too_long) {
      line.text.clear();
    } else {
      line.text.append(first, length);
    }
    begin_ += length + (newline ? 1 : 0);
    if (newline) break;
  }
  if (any) ++next_number_;
  return any;
}

bool InputFile::next(InputLine& line) {
  while (read_line(line)) {
    if (line.number == 1 && line.text.starts_with(kByteOrderMark))
      line.text.erase(0, kByteOrderMark.size());
    if (line.too_long) return true;
    if (!line.text.empty() && line.text.back() == '\r') line.text.pop_back();
    if (!is_blank(line.text)) return true;
  }
  return false;
}

}  // namespace lockstep::batch
