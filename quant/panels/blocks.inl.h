// The formats with blocks of 32 columns (64 for NVFP4) and float scales, times Q8_0 activations.
// A format says how a step of weights becomes unsigned bytes; the rest is the same for all.
#pragma once

#include "quant/formats/e2m1.h"
#include "quant/formats/iq4_nl.h"
#include "quant/panels/panel.inl.h"

namespace lockstep::quant {
namespace {

// Bytes of columns 4s .. 4s + 3 and 16 + 4s .. 16 + 4s + 3.
template <class V>
struct StepPair {
  typename V::Ints low, high;
};

template <class V>
LOCKSTEP_INLINE StepPair<V> nibbles(typename V::Ints pairs) noexcept {
  return {V::template bits<0, 4>(pairs), V::template bits<4, 4>(pairs)};
}

// 16 levels known at compile time, moved up where they must be unsigned, in every 128 bits.
template <class V, const std::int8_t (&kLevels)[16], int kOffset>
LOCKSTEP_INLINE typename V::Ints level_table() noexcept {
  struct alignas(16) Table {
    std::int8_t level[16];
  };
  static constexpr Table kTable = [] {
    Table table{};
    for (int i = 0; i < 16; ++i) {
      table.level[i] = static_cast<std::int8_t>(kLevels[i] + kMovedUp<V, kOffset>);
    }
    return table;
  }();
  return V::broadcast128(reinterpret_cast<const std::byte*>(kTable.level));
}

// isum[t] += products of 32 columns; unpack(s) gives the weights of step pair s.
template <class V, int N, class Unpack>
LOCKSTEP_INLINE void dot_group(Unpack unpack, const Tokens<V, N>& tokens, std::size_t column,
                               typename V::Ints (&isum)[N]) noexcept {
  Products<V, N> products(isum);
#pragma GCC unroll 2
  for (std::size_t s = 0; s < 4; s += 2) {
    const StepPair<V> first = unpack(s);
    const StepPair<V> second = unpack(s + 1);
    products.add(first.low, second.low, tokens, column + 4 * s);
    products.add(first.high, second.high, tokens, column + 16 + 4 * s);
  }
  products.store(isum);
}

// Unpackers of 32 columns at byte `at` of the panels.
template <class V>
LOCKSTEP_INLINE auto unpack_nibbles(const Panels<V>& panels, std::size_t at) noexcept {
  return [&panels, at ](std::size_t s) __attribute__((always_inline)) {
    return nibbles<V>(V::load(panels.at, at + 32 * s));
  };
}
template <class V>
LOCKSTEP_INLINE auto unpack_levels(const Panels<V>& panels, std::size_t at,
                                   typename V::Ints table) noexcept {
  return [&panels, at, table ](std::size_t s) __attribute__((always_inline)) {
    const StepPair<V> index = nibbles<V>(V::load(panels.at, at + 32 * s));
    return StepPair<V>{V::lookup(table, index.low), V::lookup(table, index.high)};
  };
}
// A step of fifth bits, then the nibbles.
template <class V>
LOCKSTEP_INLINE auto unpack_fives(const Panels<V>& panels, std::size_t at) noexcept {
  const auto fifth = V::load(panels.at, at);
  return [&panels, at, fifth ](std::size_t s) __attribute__((always_inline)) {
    const auto mask = V::set8(16);
    const StepPair<V> low4 = nibbles<V>(V::load(panels.at, at + 32 + 32 * s));
    const int step = static_cast<int>(s);
    return StepPair<V>{V::insert(low4.low, V::shift_left16(fifth, 4 - step), mask),
                       V::insert(low4.high, V::shift_right16(fifth, step), mask)};
  };
}
// 8 steps of signed bytes, moved up by 128 where they must be unsigned.
template <class V>
LOCKSTEP_INLINE auto unpack_bytes(const Panels<V>& panels, std::size_t at) noexcept {
  return [&panels, at ](std::size_t s) __attribute__((always_inline)) {
    const auto low = V::load(panels.at, at + 32 * s);
    const auto high = V::load(panels.at, at + 32 * (s + 4));
    if constexpr (V::kSigned) {
      return StepPair<V>{low, high};
    } else {
      const auto top = V::set8(-128);
      return StepPair<V>{V::bit_xor(low, top), V::bit_xor(high, top)};
    }
  };
}

// One scale, weights moved up by kOffset: Q4_0, Q5_0, Q8_0, IQ4_NL, MXFP4.
template <class V, int kOffset, std::size_t kBytes, class Format>
struct ScaledTile {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = kBytes;

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      typename V::Ints isum[N];
      begin_below<V, N, kOffset>(tokens, b, isum);
      dot_group<V, N>(Format::unpack(panels), tokens, b * kBlockValues, isum);
      add_scaled<V, N>(Format::scales(panels), tokens, b, isum, acc);
    }
  }
};

// A scale and a minimum: Q4_1, Q5_1.
template <class V, std::size_t kBytes, class Format>
struct AffineTile {
  static constexpr std::size_t kBlockValues = 32;
  static constexpr std::size_t kBlockBytes = kBytes;

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      typename V::Ints isum[N], total[N];
      clear<V, N>(isum);
      dot_group<V, N>(Format::unpack(panels), tokens, b * kBlockValues, isum);
      add_scaled<V, N>(V::halves(panels.at, 0), tokens, b, isum, acc);
      begin_with_sums<V, N>(V::both(V::set32(1)), tokens, b, total);
      add_scaled<V, N>(V::halves(panels.at, 16), tokens, b, total, acc);
    }
  }
};

template <class V>
struct HalfScale {
  LOCKSTEP_INLINE static typename V::Floats scales(const Panels<V>& panels) noexcept {
    return V::halves(panels.at, 0);
  }
};

template <class V>
struct FormatQ4_0 : HalfScale<V> {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_nibbles<V>(panels, 16);
  }
};
template <class V>
struct FormatQ5_0 : HalfScale<V> {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_fives<V>(panels, 16);
  }
};
template <class V>
struct FormatQ8_0 : HalfScale<V> {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_bytes<V>(panels, 16);
  }
};
template <class V>
struct FormatIQ4_NL : HalfScale<V> {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_levels<V>(panels, 16, level_table<V, iq4_nl::kLevels, 128>());
  }
};
template <class V>
struct FormatQ4_1 {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_nibbles<V>(panels, 32);
  }
};
template <class V>
struct FormatQ5_1 {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_fives<V>(panels, 32);
  }
};

template <class V>
struct FormatMXFP4 {
  LOCKSTEP_INLINE static auto unpack(const Panels<V>& panels) noexcept {
    return unpack_levels<V>(panels, 8, level_table<V, e2m1::kDoubled, 12>());
  }
  // Half of 2^(code - 127): the code is the exponent of an f32. Code 0, which as an exponent would
  // mean zero, becomes the subnormal 2^-127 before it is halved; 255, infinity as it stands, gets a
  // mantissa and is NaN.
  LOCKSTEP_INLINE static typename V::Floats scales(const Panels<V>& panels) noexcept {
    const auto codes = V::bytes_to_ints(panels.at, 0);
    const auto power = V::max(V::template shift_left32<23>(codes), V::set32(0x00400000));
    const auto nan =
        V::template shift_left32<14>(V::bit_and(V::add(codes, V::set32(1)), V::set32(256)));
    return V::mul(V::as_floats(V::bit_or(power, nan)), V::set(0.5f));
  }
};

// Groups of 16 columns with a float scale each.
template <class V>
struct TileNVFP4 {
  static constexpr std::size_t kBlockValues = 64;
  static constexpr std::size_t kBlockBytes = 288;
  static constexpr std::size_t kScaleBytes = 32;
  static constexpr std::size_t kGroupBytes = 64;

  // Half of 8 unsigned E4M3. Their bits are those of an f16 whose exponent has a bias larger by 8:
  // subnormals come out right, and the product is exact. 127 becomes NaN, the sign is not looked
  // at.
  LOCKSTEP_INLINE static typename V::Floats half_scales(const Panels<V>& panels,
                                                        std::size_t at) noexcept {
    const auto codes = V::bit_and(V::bytes_to_ints(panels.at, at), V::set32(127));
    const auto is_nan = V::template shift_right32<7>(V::add(codes, V::set32(1)));
    const auto nan = V::bit_and(V::sub(V::set32(0), is_nan), V::set32(0x7fff));
    const auto bits = V::bit_or(V::template shift_left32<7>(codes), nan);
    return V::mul(V::from_half_bits(bits), V::set(128.0f));
  }

  // Activation sums come in pairs: the offset meets the one of group g, 0 its neighbour.
  template <int N>
  LOCKSTEP_INLINE static void begin_group(std::size_t g, const Tokens<V, N>& tokens,
                                          std::size_t run, typename V::Ints (&isum)[N]) noexcept {
    constexpr int kOffset = kMovedUp<V, 12>;
    if constexpr (kOffset == 0) {
      clear<V, N>(isum);
    } else {
      const auto zero = V::set32(0);
      const auto offset = V::set32(-kOffset);
      begin_with_sums<V, N>(g % 2 == 0 ? V::pair(offset, zero) : V::pair(zero, offset), tokens, run,
                            isum);
    }
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    const auto table = level_table<V, e2m1::kDoubled, 12>();
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
#pragma GCC unroll 4
      for (std::size_t g = 0; g < 4; ++g) {
        const std::size_t run = 2 * b + g / 2;
        typename V::Ints isum[N];
        begin_group<N>(g, tokens, run, isum);
        const std::size_t at = kScaleBytes + kGroupBytes * g;
        const StepPair<V> first = nibbles<V>(V::load(panels.at, at));
        const StepPair<V> second = nibbles<V>(V::load(panels.at, at + 32));
        const auto level = [table](typename V::Ints index) __attribute__((always_inline)) {
          return V::lookup(table, index);
        };
        dot_sixteen<V, N>(
            {level(first.low), level(second.low), level(first.high), level(second.high)}, tokens,
            64 * b + 16 * g, isum);
        add_scaled<V, N>(half_scales(panels, 8 * g), tokens, run, isum, acc);
      }
    }
  }
};

template <class V>
using TileQ4_0 = ScaledTile<V, 8, 144, FormatQ4_0<V>>;
template <class V>
using TileQ5_0 = ScaledTile<V, 16, 176, FormatQ5_0<V>>;
template <class V>
using TileQ8_0 = ScaledTile<V, kMovedUp<V, 128>, 272, FormatQ8_0<V>>;
template <class V>
using TileIQ4_NL = ScaledTile<V, kMovedUp<V, 128>, 144, FormatIQ4_NL<V>>;
template <class V>
using TileMXFP4 = ScaledTile<V, kMovedUp<V, 12>, 136, FormatMXFP4<V>>;
template <class V>
using TileQ4_1 = AffineTile<V, 160, FormatQ4_1<V>>;
template <class V>
using TileQ5_1 = AffineTile<V, 192, FormatQ5_1<V>>;

}  // namespace
}  // namespace lockstep::quant
