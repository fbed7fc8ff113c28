// Decoding and encoding rows of any format with the fastest functions that there are, and finding
// values that are no numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "quant/encode.h"
#include "quant/format.h"
#include "quant/kernels.h"

namespace lockstep::quantize {

// Encodes rows in one format: with side data where it has them, else without.
struct RowEncoder {
  quant::Encoder plain = nullptr;
  quant::SideEncoder learned = nullptr;

  explicit operator bool() const noexcept { return plain != nullptr || learned != nullptr; }
  void operator()(const std::byte* side, const float* values, const float* importance,
                  std::byte* blocks, std::size_t n) const noexcept {
    if (learned != nullptr) return learned(side, values, importance, blocks, n);
    plain(values, importance, blocks, n);
  }
};

class RowCodec {
 public:
  explicit RowCodec(quant::Isa isa) : isa_(isa), rows_(&quant::row_kernels(isa)) {}

  // n values, whole blocks; `side`: the tensor's side data, if its format has any. The dense
  // formats have vector code among the row kernels.
  void decode(const quant::FormatTraits& format, const std::byte* side, const std::byte* blocks,
              float* values, std::size_t n) const noexcept {
    if (format.format == quant::Format::f16) {
      rows_->f16_to_f32(reinterpret_cast<const std::uint16_t*>(blocks), values, n);
    } else if (format.format == quant::Format::bf16) {
      rows_->bf16_to_f32(reinterpret_cast<const std::uint16_t*>(blocks), values, n);
    } else {
      quant::decode_values(format, side, blocks, values, n);
    }
  }

  // Empty where the format cannot be written.
  RowEncoder encoder(const quant::FormatTraits& format) const noexcept {
    return {quant::find_encoder(format.format, isa_),
            quant::find_side_encoder(format.format, isa_)};
  }

  quant::Isa isa() const noexcept { return isa_; }

 private:
  quant::Isa isa_;
  const quant::RowKernels* rows_;
};

// Index of the first NaN or infinity, or values.size().
inline std::size_t first_non_finite(std::span<const float> values) noexcept {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  constexpr std::size_t kRun = 1024;  // a branch per run, so that the test of one value is cheap
  const auto is_bad = [](float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return (bits & kExponent) == kExponent;
  };
  for (std::size_t begin = 0; begin < values.size(); begin += kRun) {
    const std::size_t end = values.size() - begin < kRun ? values.size() : begin + kRun;
    unsigned bad = 0;
    for (std::size_t i = begin; i < end; ++i) bad |= is_bad(values[i]) ? 1u : 0u;
    if (bad == 0) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (is_bad(values[i])) return i;
    }
  }
  return values.size();
}

}  // namespace lockstep::quantize
