// See side_data.h.
#include "runtime/side_data.h"

#include "runtime/printable.h"

namespace lockstep {

namespace {

constexpr std::string_view kSuffix = quant::kSideTensorSuffix;

}  // namespace

const GgufTensor* find_side_tensor(const GgufFile& file, const GgufTensor& tensor) {
  if (tensor.format->side == nullptr) return nullptr;
  return file.find_tensor(quant::side_tensor_name(tensor.name));
}

bool is_side_tensor(const GgufFile& file, const GgufTensor& tensor) {
  if (!tensor.name.ends_with(kSuffix)) return false;
  const std::string_view owner =
      std::string_view(tensor.name).substr(0, tensor.name.size() - kSuffix.size());
  const GgufTensor* found = file.find_tensor(owner);
  return found != nullptr && found->format->side != nullptr;
}

std::vector<std::byte> read_side_data(const GgufFile& file, const GgufTensor& tensor) {
  const quant::SideTraits* side = tensor.format->side;
  if (side == nullptr) return {};
  const std::string what = "tensor \"" + printable(quant::side_tensor_name(tensor.name)) +
                           "\", which belongs to \"" + printable(tensor.name) + "\" in " +
                           std::string(tensor.format->name) + ",";
  const GgufTensor* found = find_side_tensor(file, tensor);
  if (found == nullptr) file.refuse("the " + what + " is missing");
  if (found->format->format != quant::Format::i8 ||
      found->dims != std::vector<std::uint64_t>{side->bytes}) {
    file.refuse(what + " is " + std::string(found->format->name) + " " + shape_text(found->dims) +
                ", expected I8 [" + std::to_string(side->bytes) + "]");
  }
  std::vector<std::byte> bytes(side->bytes);
  file.read(*found, 0, bytes);
  if (const char* problem = side->problem(bytes.data())) {
    file.refuse(what + " " + problem + "; the file is damaged");
  }
  return bytes;
}

}  // namespace lockstep
