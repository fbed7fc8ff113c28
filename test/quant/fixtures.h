// Weights and activations for the kernel tests: random ones, and the extremes at which integer sums
// would saturate if a kernel added one pair too many.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "quant/kernels.h"

namespace lockstep::test {

// Bits equal, or both NaN: which NaN is not promised.
inline bool same_float(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// As the upper byte of an f16, and as any scale of 8 bits: NaN.
inline constexpr std::byte kBadScale{0xff};

// A scale as the places of the bytes that decide whether it is finite: setting all of them to
// kBadScale makes the block bad, clearing bit 6 of the last one makes it good. One byte nearly
// always; the f16 of IQ1_M lies scattered over the upper nibbles of four words, its exponent in two
// bytes.
using ScaleBytes = std::vector<std::size_t>;

inline void set_bytes(std::byte* block, const ScaleBytes& places, std::byte value) {
  for (const std::size_t at : places) block[at] = value;
}

// The scales of a block, found by asking the format which bytes make a block bad: one, or if no
// single one does, two together.
inline std::vector<ScaleBytes> scales_of(const quant::FormatTraits& format) {
  std::vector<ScaleBytes> found;
  const auto try_bytes = [&](ScaleBytes places) {
    std::vector<std::byte> block(format.block_bytes);
    set_bytes(block.data(), places, kBadScale);
    if (format.first_bad_scale(block.data(), 1) == 0) found.push_back(std::move(places));
  };
  for (std::size_t i = 0; i < format.block_bytes; ++i) try_bytes({i});
  if (!found.empty()) return found;
  for (std::size_t i = 0; i < format.block_bytes; ++i) {
    for (std::size_t j = i + 1; j < format.block_bytes; ++j) try_bytes({i, j});
  }
  return found;
}

enum class Weights { random, all_ones, all_zeros, alternating, most_negative };

// `blocks` blocks of file bytes. Scales are finite, of any size and sign for random weights, else
// small.
inline std::vector<std::byte> make_weights(const quant::FormatTraits& format, std::size_t blocks,
                                           Weights kind, std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<ScaleBytes> scales = scales_of(format);
  std::vector<std::byte> bytes(blocks * format.block_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    switch (kind) {
      case Weights::random:
        bytes[i] = static_cast<std::byte>(random());
        break;
      case Weights::all_ones:
        bytes[i] = std::byte{0xff};
        break;
      case Weights::all_zeros:
        bytes[i] = std::byte{0};
        break;
      case Weights::alternating:
        bytes[i] = i % 2 == 0 ? std::byte{0xf0} : std::byte{0x7f};
        break;
      case Weights::most_negative:
        bytes[i] = std::byte{0x80};
        break;
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    for (const ScaleBytes& scale : scales) {
      std::byte& upper = bytes[b * format.block_bytes + scale.back()];
      // Clearing one exponent bit makes any f16 finite, any E4M3 too, and any E8M0 at most 2^64.
      upper = kind == Weights::random ? upper & std::byte{0xbf} : std::byte{0x1c};
    }
  }
  return bytes;
}

// Tokens in the form that kernels read.
struct Activations {
  quant::ActivationLayout layout;
  std::size_t k = 0, block = 0, tokens = 0;
  std::vector<float> memory;  // f32 for its alignment

  Activations(quant::Format activation, std::size_t columns, std::size_t token_count)
      : layout(quant::ActivationLayout::of(activation, columns)),
        k(columns),
        block(quant::traits(activation).block_values),
        tokens(token_count),
        memory(layout.bytes * token_count / sizeof(float)) {}

  std::byte* base() { return reinterpret_cast<std::byte*>(memory.data()); }
  quant::ActivationRow row(std::size_t t) { return layout.row(base() + t * layout.bytes); }
  std::int8_t* q(std::size_t t) { return const_cast<std::int8_t*>(row(t).q); }
  std::int16_t* sums(std::size_t t) { return const_cast<std::int16_t*>(row(t).sums); }
  float* scale(std::size_t t) { return const_cast<float*>(row(t).scale); }

  void quantize(std::size_t t, const float* values, quant::Isa isa) {
    quant::row_kernels(isa).quantize_activations(values, k, block, q(t), sums(t), scale(t));
  }

  // Sets q[i] = value(i), with the sums that belong to it and a random scale per block.
  template <class F>
  void fill(std::size_t t, std::mt19937& random, F value) {
    for (std::size_t i = 0; i < k; ++i) q(t)[i] = static_cast<std::int8_t>(value(i));
    for (std::size_t run = 0; run < k / quant::kActivationSumRun; ++run) {
      int sum = 0;
      for (std::size_t i = 0; i < quant::kActivationSumRun; ++i) {
        sum += q(t)[run * quant::kActivationSumRun + i];
      }
      sums(t)[run] = static_cast<std::int16_t>(sum);
    }
    for (std::size_t b = 0; b < k / block; ++b) {
      scale(t)[b] = 1e-3f * static_cast<float>(1 + random() % 1000);
    }
  }
};

enum class Values { random, all_positive, all_negative, alternating, by_halves };

inline Activations make_activations(const quant::FormatTraits& format, std::size_t k,
                                    std::size_t tokens, Values kind, std::uint32_t seed) {
  std::mt19937 random(seed);
  Activations made(format.activation, k, tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    made.fill(t, random, [&](std::size_t i) -> int {
      switch (kind) {
        case Values::random:
          return static_cast<int>(random() % 255) - 127;
        case Values::all_positive:
          return 127;
        case Values::all_negative:
          return -127;
        case Values::alternating:
          return i % 2 == 0 ? 127 : -127;
        case Values::by_halves:
          return i / 2 % 2 == 0 ? 127 : -127;
      }
      return 0;
    });
  }
  return made;
}

// The rows of `file_rows` packed for a kernel, panel after panel.
inline std::vector<std::byte> pack_rows(const quant::MatmulKernel& kernel,
                                        const std::vector<std::byte>& file_rows, std::size_t rows,
                                        std::size_t k) {
  const std::size_t row_bytes = quant::bytes_of(kernel.format, k);
  const std::size_t panel_bytes = kernel.panel_bytes(k);
  const std::size_t step = kernel.panel_rows;
  std::vector<std::byte> panels((rows + step - 1) / step * panel_bytes);
  for (std::size_t r = 0; r < rows; r += step) {
    kernel.pack(file_rows.data() + r * row_bytes, std::min(step, rows - r), k,
                panels.data() + r / step * panel_bytes);
  }
  return panels;
}

}  // namespace lockstep::test
