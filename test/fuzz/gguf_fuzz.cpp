// Any bytes as a GGUF file: it opens or is refused with Error. What opens must keep its promises:
// tensors inside the file, in order, readable to the last byte, and fit to be shown.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/error.h"
#include "runtime/cli/inspect.h"
#include "runtime/gguf.h"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

void examine(const lockstep::GgufFile& file) {
  std::uint64_t end = file.data_offset();
  for (const lockstep::GgufTensor& tensor : file.tensors()) {
    require(tensor.offset % file.alignment() == 0);
    require(tensor.offset >= end || tensor.bytes == 0);
    require(tensor.bytes == 0 || tensor.offset + tensor.bytes <= file.file_bytes());
    require(file.find_tensor(tensor.name) == &tensor);
    end = tensor.offset + tensor.bytes;
    std::byte last{};
    if (tensor.bytes > 0) file.read(tensor, tensor.bytes - 1, std::span(&last, 1));
  }
  for (const lockstep::MetadataEntry& entry : file.metadata()) {
    require(file.find(entry.key) == &entry.value);
  }
  require(!lockstep::cli::inspect_text(file).empty());
  require(!lockstep::cli::inspect_json(file).dump().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int descriptor = ::memfd_create("model.gguf", 0);
  require(descriptor >= 0 && ::ftruncate(descriptor, 0) == 0);
  require(::pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size));
  try {
    examine(lockstep::GgufFile::open("/proc/self/fd/" + std::to_string(descriptor)));
  } catch (const lockstep::Error& error) {
    require(std::string(error.what()).find('\n') == std::string::npos);
  }
  return 0;
}
