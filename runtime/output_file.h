// A file that appears under its name only when it is complete: written beside it, then renamed.
// Readers never see half a model, and a failed write leaves the old file as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep {

class OutputFile {
 public:
  // Throws Error(cannot_create).
  explicit OutputFile(std::filesystem::path path);
  // Removes the temporary file unless commit() has been called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Throws Error(io).
  void append(std::span<const std::byte> bytes);
  // Makes the file `bytes` long, of zeros where nothing is written, and reserves the space where
  // the file system can: a full disk shows before the work, not after it. Throws Error(io).
  void reserve(std::uint64_t bytes);
  // Any piece in any order, from several threads at once; not mixed with append(). Throws
  // Error(io).
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Gives the file its name, replacing an older one. Throws Error(io) or Error(cannot_create).
  void commit();

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::vector<std::byte> buffer_;
};

}  // namespace lockstep
