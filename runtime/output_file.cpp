// Temporary name, buffer, rename.
#include "runtime/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/error.h"
#include "runtime/printable.h"

namespace lockstep {

namespace {

constexpr std::size_t kBufferBytes = 1u << 20;

[[noreturn]] void fail(ErrorCode code, const std::filesystem::path& path, const char* what,
                       int reason) {
  throw Error(code, printable(path.string(), 4096) + ": " + what + ": " +
                        std::generic_category().message(reason));
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  static std::atomic<unsigned> serial{0};
  // A name that another process left behind after a crash is skipped, not reused.
  for (int attempt = 0; attempt < 100 && descriptor_ < 0; ++attempt) {
    temporary_ = path_;
    temporary_ += ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) fail(ErrorCode::cannot_create, path_, "cannot be created", errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void OutputFile::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush() {
  std::span<const std::byte> rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorCode::io, path_, "writing failed", errno);
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void OutputFile::reserve(std::uint64_t bytes) {
  const auto size = static_cast<off_t>(bytes);
  if (bytes > 0 && ::fallocate(descriptor_, 0, 0, size) != 0) {
    const int reason = errno;
    if (reason == ENOSPC || reason == EFBIG || reason == EDQUOT) {
      fail(ErrorCode::io, path_, "there is no room for it", reason);
    }
  }
  if (::ftruncate(descriptor_, size) != 0) fail(ErrorCode::io, path_, "writing failed", errno);
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorCode::io, path_, "writing failed", errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  flush();
  // Network file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    fail(ErrorCode::io, path_, "writing failed", reason);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    fail(ErrorCode::cannot_create, path_, "cannot be created", reason);
  }
}

}  // namespace lockstep
