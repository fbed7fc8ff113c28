// Sizes and names of the element types. Quantized activations are laid out by quant, so their row
// size comes from there and from nowhere else.
#include "ops/tensor.h"

#include "quant/kernels.h"

namespace lockstep::ops {

std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::q8_0:
      return "q8_0";
    case DType::act_q8_0:
      return "act_q8_0";
    case DType::act_q8_k:
      return "act_q8_k";
  }
  return "?";
}

std::size_t TensorType::row_bytes() const noexcept {
  const std::size_t columns = shape.columns();
  switch (dtype) {
    case DType::f32:
      return columns * sizeof(float);
    case DType::f16:
      return columns * sizeof(std::uint16_t);
    case DType::i32:
      return columns * sizeof(std::int32_t);
    case DType::q8_0:
      return quant::bytes_of(quant::Format::q8_0, columns);
    case DType::act_q8_0:
      return quant::ActivationLayout::of(quant::Format::q8_0, columns).bytes;
    case DType::act_q8_k:
      return quant::ActivationLayout::of(quant::Format::q8_k, columns).bytes;
  }
  return 0;
}

std::size_t TensorType::bytes() const noexcept { return shape.rows() * row_bytes(); }

Tensor make_tensor(const TensorType& type, void* data) noexcept {
  return {.type = type,
          .data = static_cast<std::byte*>(data),
          .row_stride = type.row_bytes(),
          .copy_stride = 0};
}

}  // namespace lockstep::ops
