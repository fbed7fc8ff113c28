// A file that appears under its name only when it is complete: written beside it, then renamed.
// Readers never see half a model, and a failed write leaves the old file as it was.
#pragma once

#include <cstddef>
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
