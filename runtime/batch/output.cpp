// The row writer, on plain POSIX calls: stdio would buffer, and would hide at which byte a write
// failed.
#include "runtime/batch/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::batch {

RowWriter::RowWriter(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  const int error = errno;
  const std::string reason = error == EEXIST
                                 ? "exists already; a finished row is never overwritten"
                                 : fmt::format("cannot create: {}", std::strerror(error));
  throw Error(ErrorCode::cannot_create, fmt::format("{}: {}", path.string(), reason));
}

RowWriter::~RowWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RowWriter::write(std::string_view row) {
  std::string_view rest = row;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Best effort: where the file cannot even be cut, its last line stays torn.
      if (::ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0)
        fail("cannot write (torn last row)", error);
      fail("cannot write", error);
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  bytes_ += row.size();
}

void RowWriter::close() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  // Not every file system can sync (EINVAL, EROFS); a real failure is reported.
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) {
    const int error = errno;
    ::close(descriptor);
    fail("cannot flush to disk", error);
  }
  if (::close(descriptor) != 0) fail("cannot close", errno);
}

void RowWriter::fail(const char* what, int error) {
  throw Error(ErrorCode::io, fmt::format("{}: {}: {}; the rows written so far are kept",
                                         path_.string(), what, std::strerror(error)));
}

}  // namespace lockstep::batch
