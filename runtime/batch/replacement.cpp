// Temporary name, buffer, fsync, rename, fsync of the folder: without the last two a power failure
// could leave an empty file under the name.
#include "runtime/batch/replacement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "lockstep/error.h"

namespace lockstep::batch {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

[[noreturn]] void fail(ErrorCode code, const std::filesystem::path& path, const char* what,
                       int reason) {
  throw Error(code, fmt::format("{}: {}: {}", path.string(), what, std::strerror(reason)));
}

// A link keeps its place: the file that it leads to is replaced.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

}  // namespace

bool sync_to_disk(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

Replacement::Replacement(const std::filesystem::path& path)
    : path_(resolved(path)), temporary_(path_.string() + ".part") {
  file_ = open_locked(temporary_, O_WRONLY | O_CREAT);
  if (!file_.is_open()) fail(ErrorCode::cannot_create, temporary_, "cannot create", errno);
  if (::ftruncate(file_.get(), 0) != 0) fail(ErrorCode::io, temporary_, "cannot write", errno);
}

Replacement::~Replacement() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void Replacement::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Replacement::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorCode::io, path_, "cannot write", errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void Replacement::commit() {
  flush();
  struct stat older {};
  if (::stat(path_.c_str(), &older) == 0) ::fchmod(file_.get(), older.st_mode & 07777);
  if (!sync_to_disk(file_.get())) fail(ErrorCode::io, path_, "cannot flush to disk", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail(ErrorCode::cannot_create, path_, "cannot create", errno);
  }
  committed_ = true;
  std::filesystem::path folder = path_.parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) ::fsync(opened.get());
}

}  // namespace lockstep::batch
