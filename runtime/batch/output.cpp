// The row writer, on plain POSIX calls: stdio would buffer, and would hide at which byte a write
// failed.
#include "runtime/batch/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "lockstep/error.h"
#include "runtime/batch/replacement.h"

namespace lockstep::batch {

namespace {

// How long a wait for a pipe's reader may overlook a signal that came just before it.
constexpr int kLookEveryMs = 100;

// A pipe takes this much at once or nothing, so that no write() waits longer than poll() said.
std::size_t largest_write(int descriptor) {
  struct stat status {};
  const bool is_pipe =
      ::fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  return is_pipe ? PIPE_BUF : SIZE_MAX;
}

}  // namespace

RowWriter::RowWriter(const std::filesystem::path& path)
    : path_(path), file_(open_locked(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL)) {
  if (file_.is_open()) return;
  const int error = errno;
  const std::string reason = error == EEXIST
                                 ? "exists already; a finished row is never overwritten"
                                 : fmt::format("cannot create: {}", std::strerror(error));
  throw Error(ErrorCode::cannot_create, fmt::format("{}: {}", path.string(), reason));
}

RowWriter::RowWriter(std::filesystem::path path, Descriptor file, std::uint64_t bytes)
    : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}

RowWriter::RowWriter(const StopFlags& flags)
    : path_("standard output"), file_(STDOUT_FILENO), is_stream_(true), flags_(flags) {}

RowWriter::~RowWriter() {
  if (is_stream_) file_.release();  // not ours to close
}

void RowWriter::write(std::string_view row) {
  if (is_stream_) return write_stream(row);
  std::string_view rest = row;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Best effort: where the file cannot even be cut, its last line stays torn.
      if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0)
        fail("cannot write (torn last row)", error);
      fail("cannot write", error);
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  bytes_ += row.size();
}

void RowWriter::write_stream(std::string_view row) {
  const std::size_t most = largest_write(file_.get());
  while (!row.empty()) {
    if (flags_.dropped()) {
      throw Error(
          ErrorCode::interrupted,
          "stopped by a signal while nobody read standard output; its last row may be torn");
    }
    pollfd ready{file_.get(), POLLOUT, 0};
    const int count = ::poll(&ready, 1, kLookEveryMs);
    if (count < 0 && errno != EINTR) fail("cannot write", errno);
    if (count <= 0) continue;
    const ssize_t written = ::write(file_.get(), row.data(), std::min(row.size(), most));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) fail("cannot write", errno);
    row.remove_prefix(static_cast<std::size_t>(written));
  }
}

void RowWriter::close() {
  if (is_stream_) return;
  if (!sync_to_disk(file_.get())) fail("cannot flush to disk", errno);
  if (::close(file_.release()) != 0) fail("cannot close", errno);
}

void RowWriter::fail(const char* what, int error) {
  throw Error(ErrorCode::io, fmt::format("{}: {}: {}; the rows written so far are kept",
                                         path_.string(), what, std::strerror(error)));
}

}  // namespace lockstep::batch
