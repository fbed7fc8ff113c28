// flock rather than fcntl locks: those vanish when any descriptor of the file is closed. A file may
// be renamed over between open and lock, so the name is looked up once more afterwards.
#include "runtime/batch/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/error.h"

namespace lockstep::batch {

namespace {

constexpr int kAttempts = 8;

bool is_still_named(const std::filesystem::path& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

Descriptor open_locked(const std::filesystem::path& path, int flags) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
    if (!file.is_open()) return file;
    // Any other failure is a file system without locks (ENOLCK, EOPNOTSUPP, ...).
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) break;
    if (is_still_named(path, file.get())) return file;
  }
  throw Error(ErrorCode::cannot_create,
              fmt::format("{}: another process is writing it at this moment", path.string()));
}

bool is_locked_by_another(int descriptor) {
  if (::flock(descriptor, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(descriptor, LOCK_UN);
  return false;
}

}  // namespace lockstep::batch
