// Random weights of any format without an encoder: blocks are drawn directly, so a model of a
// billion weights takes seconds and formats that nobody can encode yet can be benchmarked.
//
// Quants come from a table of 256 normal quantiles, eight of them per random number; scales vary
// from block to block so that a kernel which mixes them up is seen. The decoded values have mean
// zero (nearly) and the standard deviation that was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/random_bits.h"
#include "perf/random_blocks_32.h"
#include "perf/random_blocks_k.h"
#include "quant/format.h"

namespace lockstep::perf {
namespace random_detail {

// Values of 1 element per block: a table of 65536 quantiles in the stored form, drawn by 16 bits.
template <typename Stored, typename Convert>
void fill_dense(RandomBits& bits, double sigma, std::span<std::byte> into, Convert convert) {
  static const std::vector<float> kNormal = [] {
    std::vector<float> normal(65536);
    for (std::size_t i = 0; i < normal.size(); ++i) {
      normal[i] = static_cast<float>(normal_quantile(i, normal.size()));
    }
    return normal;
  }();
  std::uint64_t word = 0;
  const std::size_t count = into.size() / sizeof(Stored);
  for (std::size_t i = 0; i < count; ++i, word >>= 16) {
    if (i % 4 == 0) word = bits.next();
    const Stored value = convert(kNormal[word & 65535] * static_cast<float>(sigma));
    std::memcpy(into.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

inline void fill_f32(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<float>(bits, sigma, into, [](float x) { return x; });
}

inline void fill_f16(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<std::uint16_t>(bits, sigma, into, quant::f32_to_f16);
}

inline void fill_bf16(RandomBits& bits, double sigma, std::span<std::byte> into) {
  fill_dense<std::uint16_t>(bits, sigma, into, quant::f32_to_bf16);
}

}  // namespace random_detail

struct RandomFormat {
  quant::Format format;
  std::uint32_t file_type;  // general.file_type of a model in this format
  // Fills whole blocks.
  void (*fill)(RandomBits& bits, double sigma, std::span<std::byte> into);
};

inline constexpr RandomFormat kRandomFormats[] = {
    {quant::Format::f32, 0, random_detail::fill_f32},
    {quant::Format::f16, 1, random_detail::fill_f16},
    {quant::Format::q4_0, 2, random_detail::fill_q4_0},
    {quant::Format::q4_1, 3, random_detail::fill_q4_1},
    {quant::Format::q8_0, 7, random_detail::fill_q8_0},
    {quant::Format::q5_0, 8, random_detail::fill_q5_0},
    {quant::Format::q5_1, 9, random_detail::fill_q5_1},
    {quant::Format::q2_k, 10, random_detail::fill_q2_k},
    {quant::Format::q3_k, 11, random_detail::fill_q3_k},
    {quant::Format::q4_k, 14, random_detail::fill_q4_k},
    {quant::Format::q5_k, 16, random_detail::fill_q5_k},
    {quant::Format::q6_k, 18, random_detail::fill_q6_k},
    {quant::Format::iq4_nl, 25, random_detail::fill_iq4_nl},
    {quant::Format::iq4_xs, 30, random_detail::fill_iq4_xs},
    {quant::Format::bf16, 32, random_detail::fill_bf16},
    {quant::Format::mxfp4, 38, random_detail::fill_mxfp4},
    {quant::Format::nvfp4, 39, random_detail::fill_nvfp4},
};

// Throws std::invalid_argument with the list of choices.
inline const RandomFormat& random_format(quant::Format format) {
  std::string names;
  for (const RandomFormat& known : kRandomFormats) {
    if (known.format == format) return known;
    names.append(" ").append(quant::traits(known.format).name);
  }
  throw std::invalid_argument("no random weights in " + std::string(quant::traits(format).name) +
                              "; there are:" + names);
}

}  // namespace lockstep::perf
