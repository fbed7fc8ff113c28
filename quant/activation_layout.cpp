// Where the parts of quantized activations lie. Apart from the format table, so that kernels can be
// linked without it.
#include "quant/formats/q8_0.h"
#include "quant/formats/q8_k.h"
#include "quant/kernels.h"

namespace lockstep::quant {
namespace {

constexpr std::size_t kPartAlign = 64;  // a cache line

constexpr std::size_t align_up(std::size_t bytes) noexcept {
  return (bytes + kPartAlign - 1) / kPartAlign * kPartAlign;
}

}  // namespace

ActivationLayout ActivationLayout::of(Format activation, std::size_t k) noexcept {
  const std::size_t block = activation == Format::q8_k ? q8_k::kValues : q8_0::kValues;
  ActivationLayout layout;
  layout.q = 0;
  layout.sums = align_up(k * sizeof(std::int8_t));
  layout.scale = layout.sums + align_up(k / kActivationSumRun * sizeof(std::int16_t));
  layout.bytes = layout.scale + align_up(k / block * sizeof(float));
  return layout;
}

ActivationRow ActivationLayout::row(const std::byte* base) const noexcept {
  return {.q = reinterpret_cast<const std::int8_t*>(base + q),
          .sums = reinterpret_cast<const std::int16_t*>(base + sums),
          .scale = reinterpret_cast<const float*>(base + scale)};
}

}  // namespace lockstep::quant
