// A model file taken apart, to be put together again with something changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"

namespace lockstep::test {

struct LooseTensor {
  std::string name;
  quant::Format format;
  std::vector<std::uint64_t> dims;
  std::vector<std::byte> bytes;
};

struct LooseFile {
  std::vector<MetadataEntry> metadata;
  std::vector<LooseTensor> tensors;

  explicit LooseFile(const std::filesystem::path& path) {
    const GgufFile file = GgufFile::open(path);
    metadata = file.metadata();
    for (const GgufTensor& tensor : file.tensors()) {
      LooseTensor& copy =
          tensors.emplace_back(LooseTensor{tensor.name, tensor.format->format, tensor.dims, {}});
      copy.bytes.resize(tensor.bytes);
      file.read(tensor, 0, copy.bytes);
    }
  }

  LooseTensor& tensor(const std::string& name) {
    for (LooseTensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error("no tensor " + name);
  }

  void set(const std::string& key, MetadataValue value) {
    std::erase_if(metadata, [&](const MetadataEntry& entry) { return entry.key == key; });
    metadata.push_back({key, std::move(value)});
  }
  void set_u32(const std::string& key, std::uint64_t value) {
    set(key, {.type = MetadataType::u32, .element = {}, .value = value});
  }
  void set_f32(const std::string& key, double value) {
    set(key, {.type = MetadataType::f32, .element = {}, .value = value});
  }
  void set_string(const std::string& key, std::string value) {
    set(key, {.type = MetadataType::string, .element = {}, .value = std::move(value)});
  }

  void write(const std::filesystem::path& path) const {
    GgufWriter writer;
    for (const MetadataEntry& entry : metadata) writer.add(entry.key, entry.value);
    for (const LooseTensor& tensor : tensors) {
      writer.add_tensor(tensor.name, tensor.format, tensor.dims, tensor.bytes);
    }
    writer.write(path);
  }
};

}  // namespace lockstep::test
