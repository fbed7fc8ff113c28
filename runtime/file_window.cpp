// Buffered reading with pread. The buffer is small enough to stay in the second-level cache and
// large enough that system calls do not show.
#include "runtime/file_window.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "lockstep/error.h"
#include "runtime/printable.h"

namespace lockstep {

namespace {
constexpr std::uint64_t kWindowBytes = 256 * 1024;
}

void read_fully(int descriptor, std::uint64_t offset, std::span<std::byte> into,
                const std::filesystem::path& file) {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string reason = got < 0 ? std::generic_category().message(errno)
                                         : "the file became shorter while it was read";
      throw Error(ErrorCode::io, printable(file.string(), 4096) + ": reading at byte " +
                                     std::to_string(offset) + " failed: " + reason);
    }
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

FileWindow::FileWindow(int descriptor, std::uint64_t size, const std::filesystem::path& file)
    : descriptor_(descriptor),
      size_(size),
      file_(file),
      buffer_(static_cast<std::size_t>(std::min(size, kWindowBytes))) {}

void FileWindow::read(void* into, std::uint64_t count) {
  auto* target = static_cast<std::byte*>(into);
  while (count > 0) {
    if (cursor_ == filled_) refill();
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, filled_ - cursor_));
    std::memcpy(target, buffer_.data() + cursor_, part);
    cursor_ += part;
    target += part;
    count -= part;
  }
}

void FileWindow::seek(std::uint64_t position) {
  if (position >= start_ && position - start_ <= filled_) {
    cursor_ = static_cast<std::size_t>(position - start_);
    return;
  }
  start_ = position;
  filled_ = 0;
  cursor_ = 0;
}

void FileWindow::refill() {
  start_ += filled_;
  cursor_ = 0;
  filled_ = 0;
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(size_ - start_, buffer_.size()));
  read_fully(descriptor_, start_, std::span(buffer_).first(count), file_);
  filled_ = count;
}

}  // namespace lockstep
