// A file that takes its name, and the place of an older file, only when it is complete and on the
// disk: killed at any moment, a job has the old one or the new one. Unlike OutputFile it writes
// under a fixed name beside the file, locked, so that a job that is killed and resumed again and
// again leaves one unfinished file at most, which the next run takes over.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/batch/file_lock.h"

namespace lockstep::batch {

class Replacement {
 public:
  // Throws Error(cannot_create), also if another process is writing the same.
  explicit Replacement(const std::filesystem::path& path);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  // Removes what was written unless commit() has been called.
  ~Replacement();

  // Throws Error(io).
  void write(std::string_view bytes);
  // Flushes to the disk and renames; what had the name gives its permissions. Throws Error(io) or
  // Error(cannot_create).
  void commit();

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_;
  std::string buffer_;
  bool committed_ = false;
};

// Flushes an open file to the disk. Not every file system can (EINVAL, EROFS, ENOTSUP): that is no
// failure. False with errno set if it failed.
bool sync_to_disk(int descriptor);

}  // namespace lockstep::batch
