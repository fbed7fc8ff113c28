// The smallest reader of GGUF files that the format tests need: tensors of a trusted reference file
// by name. It exists so that the tests of quant/ depend on quant/ alone; the reader for files that
// may be hostile is runtime/gguf.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {

class MiniGguf {
 public:
  struct Tensor {
    std::uint32_t type = 0;
    std::vector<std::uint64_t> shape;  // fastest dimension first
    const std::byte* data = nullptr;

    std::size_t values() const {
      std::size_t n = 1;
      for (const std::uint64_t extent : shape) n *= extent;
      return n;
    }
    std::vector<float> floats() const {
      std::vector<float> out(values());
      std::memcpy(out.data(), data, out.size() * sizeof(float));
      return out;
    }
  };

  explicit MiniGguf(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    bytes_.resize(text.size());
    if (!text.empty()) std::memcpy(bytes_.data(), text.data(), text.size());
    if (take<std::uint32_t>() != 0x46554747u)
      throw std::runtime_error("no GGUF file: " + path.string());
    take<std::uint32_t>();  // version
    const auto tensors = take<std::uint64_t>();
    const auto keys = take<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
      take_string();
      skip_value(take<std::uint32_t>());
    }
    std::map<std::string, std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < tensors; ++i) {
      const std::string name = take_string();
      Tensor& tensor = tensors_[name];
      tensor.shape.resize(take<std::uint32_t>());
      for (std::uint64_t& extent : tensor.shape) extent = take<std::uint64_t>();
      tensor.type = take<std::uint32_t>();
      offsets[name] = take<std::uint64_t>();
    }
    const std::size_t begin = (at_ + 31) / 32 * 32;
    for (auto& [name, tensor] : tensors_) tensor.data = &bytes_.at(begin + offsets[name]);
  }

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  template <class T>
  T take() {
    T value;
    if (at_ + sizeof value > bytes_.size()) throw std::runtime_error("GGUF file is too short");
    std::memcpy(&value, &bytes_[at_], sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take_string() {
    std::string text(take<std::uint64_t>(), ' ');
    for (char& c : text) c = take<char>();
    return text;
  }
  void skip_value(std::uint32_t type) {
    constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      take_string();
    } else if (type == 9) {
      const auto element = take<std::uint32_t>();
      for (auto n = take<std::uint64_t>(); n != 0; --n) skip_value(element);
    } else {
      at_ += kSizes[type];
    }
  }

  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace lockstep::test
