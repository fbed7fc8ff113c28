// Side data for tests that go through all formats or kernels: the same for every tensor of a
// format.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "quant/format.h"
#include "quant/formats/q4x.h"

namespace lockstep::test {

// Four different codebooks, with the extreme levels and, in one, only them; scales up to about
// `top` times a level.
inline std::array<std::byte, quant::q4x::kSideBytes> q4x_side(float top = 0.5f,
                                                              unsigned shift = 6) {
  namespace q4x = quant::q4x;
  std::array<std::byte, q4x::kSideBytes> side{};
  for (int i = 0; i < 16; ++i) {
    const auto put = [&](int book, int level) {
      side[static_cast<std::size_t>(16 * book + i)] = static_cast<std::byte>(level);
    };
    const int u = 2 * i - 15;
    put(0, u * 4);
    put(1, u * u * u * 63 / 3375);
    put(2, u < 0 ? -63 : 63);
    put(3, i * 4 + 1);
  }
  const auto largest = static_cast<std::uint16_t>((q4x::kCodes - 1) << shift);
  quant::store_field(side.data() + q4x::kBase, top / quant::f16_to_f32(largest));
  side[q4x::kShift] = static_cast<std::byte>(shift);
  return side;
}

// Null for formats without side data.
inline const std::byte* side_data(const quant::FormatTraits& format) {
  static const auto q4x = q4x_side();
  return format.side == nullptr ? nullptr : q4x.data();
}
inline const std::byte* side_data(quant::Format format) { return side_data(quant::traits(format)); }

}  // namespace lockstep::test
