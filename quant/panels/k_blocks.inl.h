// The formats with blocks of 256 columns in groups with integer scales. Where the activations have
// one scale per block (Q8_K) the whole block is summed in integers, else (Q8_0) runs of 32 columns
// are.
#pragma once

#include "quant/formats/iq4_xs.h"
#include "quant/panels/blocks.inl.h"

namespace lockstep::quant {
namespace {

// Byte j of every 32-bit lane, unsigned and signed.
template <class V, int kByte>
LOCKSTEP_INLINE typename V::Ints byte_of(typename V::Ints x) noexcept {
  return V::bit_and(V::template shift_right32<8 * kByte>(x), V::set32(255));
}
template <class V, int kByte>
LOCKSTEP_INLINE typename V::Ints signed_byte_of(typename V::Ints x) noexcept {
  return V::template shift_right_signed32<24>(V::template shift_left32<24 - 8 * kByte>(x));
}
template <class V>
LOCKSTEP_INLINE typename V::Ints byte_of(typename V::Ints x, std::size_t j) noexcept {
  switch (j) {
    case 0:
      return byte_of<V, 0>(x);
    case 1:
      return byte_of<V, 1>(x);
    case 2:
      return byte_of<V, 2>(x);
    default:
      return byte_of<V, 3>(x);
  }
}
template <class V>
LOCKSTEP_INLINE typename V::Ints signed_byte_of(typename V::Ints x, std::size_t j) noexcept {
  switch (j) {
    case 0:
      return signed_byte_of<V, 0>(x);
    case 1:
      return signed_byte_of<V, 1>(x);
    case 2:
      return signed_byte_of<V, 2>(x);
    default:
      return signed_byte_of<V, 3>(x);
  }
}

// -x * 2^kBits
template <class V, int kBits>
LOCKSTEP_INLINE typename V::Ints minus(typename V::Ints x) noexcept {
  return V::sub(V::set32(0), V::template shift_left32<kBits>(x));
}

// isum[t] += factor * group[t]
template <class V, int N>
LOCKSTEP_INLINE void add_times(typename V::Ints factor, const typename V::Ints (&group)[N],
                               typename V::Ints (&isum)[N]) noexcept {
  LOCKSTEP_FENCE();
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    isum[t] = V::add(isum[t], V::mul(group[t], factor));
    LOCKSTEP_KEEP(isum[t]);
  }
}

// isum[t] += the two factors of every lane times the two activation sums of run `run`
template <class V, int N, class Factors>
LOCKSTEP_INLINE void add_sums(Factors factors, const Tokens<V, N>& tokens, std::size_t run,
                              typename V::Ints (&isum)[N]) noexcept {
  LOCKSTEP_FENCE();
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    isum[t] = V::dot_sums(isum[t], tokens.sum_pair(t, 2 * run), factors);
    LOCKSTEP_KEEP(isum[t]);
  }
}

// sum[t] += (scale of the activations of a run) * isum[t]
template <class V, int N>
LOCKSTEP_INLINE void add_run(const Tokens<V, N>& tokens, std::size_t run,
                             const typename V::Ints (&isum)[N],
                             typename V::Floats (&sum)[N]) noexcept {
  LOCKSTEP_FENCE();
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    sum[t] = V::fma(tokens.scale_of(t, run), V::to_float(isum[t]), sum[t]);
    LOCKSTEP_KEEP(sum[t]);
  }
}

// Scales and minima of groups 0-3 and 4-7, a byte each; `at`: 3 steps with the 12 scale bytes of
// Q4_K and Q5_K. Made where they are used: all of them at once take registers from the sums.
template <class V>
struct SixBitScales {
  const Panels<V>& panels;
  std::size_t at;

  LOCKSTEP_INLINE typename V::Ints scales(std::size_t half) const noexcept { return word(0, half); }
  LOCKSTEP_INLINE typename V::Ints mins(std::size_t half) const noexcept { return word(1, half); }

 private:
  LOCKSTEP_INLINE typename V::Ints word(std::size_t i, std::size_t half) const noexcept {
    const auto own = V::load(panels.at, at + 32 * i);
    if (half == 0) return V::template bits<0, 6>(own);
    const auto last = V::load(panels.at, at + 64);
    return V::insert(i == 0 ? V::template bits<0, 4>(last) : V::template bits<4, 4>(last),
                     V::template shift_right16<2>(own), V::set8(0x30));
  }
};

template <class V>
struct TileQ4_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1152;
  static constexpr std::size_t kMins = 16;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 128;

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      const SixBitScales<V> groups{panels, kGroupScales};
      typename V::Ints isum[N], msum[N];
      clear<V, N>(isum);
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) {
        typename V::Ints group[N];
        clear<V, N>(group);
        dot_group<V, N>(unpack_nibbles<V>(panels, kQuants + 128 * g), tokens, 256 * b + 32 * g,
                        group);
        add_times<V, N>(byte_of<V>(groups.scales(g / 4), g % 4), group, isum);
      }
      clear<V, N>(msum);
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) {
        const auto min = byte_of<V>(groups.mins(g / 4), g % 4);
        add_sums<V, N>(V::both(min), tokens, 8 * b + g, msum);
      }
      const auto d = V::halves(panels.at, 0);
      const auto dmin = V::halves(panels.at, kMins);
#pragma GCC unroll 8
      for (int t = 0; t < N; ++t) {
        const auto da = tokens.scale_of(t, b);
        acc[t] = V::fma(V::mul(d, da), V::to_float(isum[t]), acc[t]);
        acc[t] = V::fnma(V::mul(dmin, da), V::to_float(msum[t]), acc[t]);
      }
    }
  }
};

// acc[t] += d * sum[t] - dmin * min_sum[t]
template <class V, int N>
LOCKSTEP_INLINE void add_block_and_min(const Panels<V>& panels, const typename V::Floats (&sum)[N],
                                       const typename V::Floats (&min_sum)[N],
                                       typename V::Floats (&acc)[N]) noexcept {
  const auto d = V::halves(panels.at, 0);
  const auto dmin = V::halves(panels.at, 16);
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    acc[t] = V::fma(d, sum[t], acc[t]);
    acc[t] = V::fnma(dmin, min_sum[t], acc[t]);
  }
}

template <class V>
struct TileQ5_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1408;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 128;

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      const SixBitScales<V> groups{panels, kGroupScales};
      typename V::Floats sum[N], min_sum[N];
      clear<V, N>(sum);
      clear<V, N>(min_sum);
#pragma GCC unroll 8
      for (std::size_t g = 0; g < 8; ++g) {
        const std::size_t run = 8 * b + g;
        typename V::Ints isum[N];
        clear<V, N>(isum);
        dot_group<V, N>(unpack_fives<V>(panels, kQuants + 160 * g), tokens, 32 * run, isum);
        const auto scale = byte_of<V>(groups.scales(g / 4), g % 4);
#pragma GCC unroll 8
        for (int t = 0; t < N; ++t) isum[t] = V::mul(isum[t], scale);
        add_run<V, N>(tokens, run, isum, sum);
        const auto min = byte_of<V>(groups.mins(g / 4), g % 4);
        begin_with_sums<V, N>(V::both(min), tokens, run, isum);
        add_run<V, N>(tokens, run, isum, min_sum);
      }
      add_block_and_min<V, N>(panels, sum, min_sum, acc);
    }
  }
};

// A group of 16 columns in one step: four times two bits in every byte.
template <class V>
struct TileQ2_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 672;
  static constexpr std::size_t kGroupScales = 32;
  static constexpr std::size_t kQuants = 160;

  template <int N>
  LOCKSTEP_INLINE static void add_group(typename V::Ints quads, typename V::Ints scale,
                                        const Tokens<V, N>& tokens, std::size_t column,
                                        typename V::Ints (&isum)[N]) noexcept {
    typename V::Ints group[N];
    clear<V, N>(group);
    dot_sixteen<V, N>({V::template bits<0, 2>(quads), V::template bits<2, 2>(quads),
                       V::template bits<4, 2>(quads), V::template bits<6, 2>(quads)},
                      tokens, column, group);
    add_times<V, N>(scale, group, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      typename V::Floats sum[N], min_sum[N];
      clear<V, N>(sum);
      clear<V, N>(min_sum);
#pragma GCC unroll 8
      for (std::size_t pair = 0; pair < 8; ++pair) {
        const std::size_t run = 8 * b + pair;
        const auto bytes = V::load(panels.at, kGroupScales + 32 * (pair / 2));
        const auto scales = V::template bits<0, 4>(bytes);
        const auto mins = V::template bits<4, 4>(bytes);
        const std::size_t first = pair % 2 * 2;  // byte of the even group
        typename V::Ints isum[N];
        clear<V, N>(isum);
        for (std::size_t half = 0; half < 2; ++half) {
          add_group<N>(V::load(panels.at, kQuants + 64 * pair + 32 * half),
                       byte_of<V>(scales, first + half), tokens, 32 * run + 16 * half, isum);
        }
        add_run<V, N>(tokens, run, isum, sum);
        begin_with_sums<V, N>(V::pair(byte_of<V>(mins, first), byte_of<V>(mins, first + 1)), tokens,
                              run, isum);
        add_run<V, N>(tokens, run, isum, min_sum);
      }
      add_block_and_min<V, N>(panels, sum, min_sum, acc);
    }
  }
};

// Weights 0..7, the offset of 4 taken off with the activation sums. Six quads of a run of 32
// columns lie ready in its 3 steps, two are put together from what is left of them.
template <class V>
struct TileQ3_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 880;
  static constexpr std::size_t kGroupScales = 16;
  static constexpr std::size_t kQuants = 112;
  static constexpr std::size_t kRunBytes = 96;

  LOCKSTEP_INLINE static typename V::Ints join(typename V::Ints low,
                                               typename V::Ints upper) noexcept {
    return V::sub8(V::insert(low, upper, V::set8(0x30)), V::set8(32));
  }

  // sc_j - 32 of groups 4i .. 4i + 3, an int8 each.
  LOCKSTEP_INLINE static typename V::Ints group_scales(const Panels<V>& panels,
                                                       std::size_t i) noexcept {
    const auto low = V::load(panels.at, kGroupScales + 32 * (i % 2));
    const auto upper = V::load(panels.at, kGroupScales + 64);
    switch (i) {
      case 0:
        return join(V::template bits<0, 4>(low), V::shift_left16(upper, 4));
      case 1:
        return join(V::template bits<0, 4>(low), V::shift_left16(upper, 2));
      case 2:
        return join(V::template bits<4, 4>(low), upper);
      default:
        return join(V::template bits<4, 4>(low), V::template shift_right16<2>(upper));
    }
  }

  // isum[t] += scale * products over one group of 16 columns
  template <int N>
  LOCKSTEP_INLINE static void add_group(const typename V::Ints (&quads)[4], typename V::Ints scale,
                                        const Tokens<V, N>& tokens, std::size_t column,
                                        typename V::Ints (&isum)[N]) noexcept {
    typename V::Ints group[N];
    clear<V, N>(group);
    dot_sixteen<V, N>(quads, tokens, column, group);
    add_times<V, N>(scale, group, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      typename V::Ints isum[N];
      clear<V, N>(isum);
#pragma GCC unroll 8
      for (std::size_t pair = 0; pair < 8; ++pair) {
        const std::size_t run = 8 * b + pair;
        const std::size_t first = pair % 2 * 2;
        const auto scales = group_scales(panels, pair / 2);
        const auto scale0 = signed_byte_of<V>(scales, first);
        const auto scale1 = signed_byte_of<V>(scales, first + 1);
        const auto s0 = V::load(panels.at, kQuants + kRunBytes * pair);
        const auto s1 = V::load(panels.at, kQuants + kRunBytes * pair + 32);
        const auto s2 = V::load(panels.at, kQuants + kRunBytes * pair + 64);
        const typename V::Ints even[4] = {V::template bits<0, 3>(s0), V::template bits<3, 3>(s0),
                                          V::template bits<0, 3>(s1), V::template bits<3, 3>(s1)};
        add_group<N>(even, scale0, tokens, 32 * run, isum);
        const auto third = V::set8(4);
        const typename V::Ints odd[4] = {
            V::template bits<0, 3>(s2), V::template bits<3, 3>(s2),
            V::insert(V::template bits<6, 2>(s0), V::template shift_right16<4>(s2), third),
            V::insert(V::template bits<6, 2>(s1), V::template shift_right16<5>(s2), third)};
        add_group<N>(odd, scale1, tokens, 32 * run + 16, isum);
        add_sums<V, N>(V::pair(minus<V, 2>(scale0), minus<V, 2>(scale1)), tokens, run, isum);
      }
      add_scaled<V, N>(V::halves(panels.at, 0), tokens, b, isum, acc);
    }
  }
};

// Weights 0..63, the offset of 32 taken off with the activation sums.
template <class V>
struct TileQ6_K {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1680;
  static constexpr std::size_t kGroupScales = 16;
  static constexpr std::size_t kQuants = 144;
  static constexpr std::size_t kGroupBytes = 96;

  template <int N>
  LOCKSTEP_INLINE static void add_group(const Panels<V>& panels, std::size_t at,
                                        typename V::Ints scale, const Tokens<V, N>& tokens,
                                        std::size_t column, typename V::Ints (&isum)[N]) noexcept {
    const auto low02 = V::load(panels.at, at);
    const auto low13 = V::load(panels.at, at + 32);
    const auto upper = V::load(panels.at, at + 64);
    typename V::Ints group[N];
    clear<V, N>(group);
    const auto two = V::set8(0x30);
    dot_sixteen<V, N>(
        {V::insert(V::template bits<0, 4>(low02), V::shift_left16(upper, 4), two),
         V::insert(V::template bits<0, 4>(low13), V::shift_left16(upper, 2), two),
         V::insert(V::template bits<4, 4>(low02), upper, two),
         V::insert(V::template bits<4, 4>(low13), V::template shift_right16<2>(upper), two)},
        tokens, column, group);
    add_times<V, N>(scale, group, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      typename V::Floats sum[N];
      clear<V, N>(sum);
      // Two groups share one activation scale.
#pragma GCC unroll 8
      for (std::size_t pair = 0; pair < 8; ++pair) {
        const std::size_t run = 8 * b + pair;
        const auto bytes = V::load(panels.at, kGroupScales + 32 * (pair / 2));
        const typename V::Ints scales[2] = {signed_byte_of<V>(bytes, pair % 2 * 2),
                                            signed_byte_of<V>(bytes, pair % 2 * 2 + 1)};
        typename V::Ints isum[N];
        begin_with_sums<V, N>(V::pair(minus<V, 5>(scales[0]), minus<V, 5>(scales[1])), tokens, run,
                              isum);
        for (std::size_t half = 0; half < 2; ++half) {
          add_group<N>(panels, kQuants + kGroupBytes * (2 * pair + half), scales[half], tokens,
                       32 * run + 16 * half, isum);
        }
        add_run<V, N>(tokens, run, isum, sum);
      }
      const auto d = V::halves(panels.at, 0);
#pragma GCC unroll 8
      for (int t = 0; t < N; ++t) acc[t] = V::fma(d, sum[t], acc[t]);
    }
  }
};

// The levels of IQ4_NL.
template <class V>
struct TileIQ4_XS {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1088;
  static constexpr std::size_t kScalesHigh = 16;
  static constexpr std::size_t kScalesLow = 32;
  static constexpr std::size_t kQuants = 64;

  // sc_g - 32 of a row's group g, from the 4 low bits and the 2 high bits of each.
  template <int kGroup>
  LOCKSTEP_INLINE static typename V::Ints scale(typename V::Ints low,
                                                typename V::Ints high) noexcept {
    const auto four = V::bit_and(V::template shift_right32<4 * kGroup>(low), V::set32(15));
    const auto two = V::bit_and(V::template shift_right32<2 * kGroup>(high), V::set32(3));
    return V::sub(V::bit_or(four, V::template shift_left32<4>(two)), V::set32(32));
  }

  template <int N, int kGroup>
  LOCKSTEP_INLINE static void add_group(const Panels<V>& panels, typename V::Ints table,
                                        typename V::Ints low, typename V::Ints high,
                                        const Tokens<V, N>& tokens, std::size_t run,
                                        typename V::Ints (&isum)[N]) noexcept {
    typename V::Ints group[N];
    begin_below<V, N, kMovedUp<V, 128>>(tokens, run, group);
    dot_group<V, N>(unpack_levels<V>(panels, kQuants + 128 * kGroup, table), tokens, 32 * run,
                    group);
    add_times<V, N>(scale<kGroup>(low, high), group, isum);
  }

  template <int N>
  LOCKSTEP_INLINE static void compute(Panels<V> panels, std::size_t blocks,
                                      const Tokens<V, N>& tokens,
                                      typename V::Floats (&acc)[N]) noexcept {
    const auto table = level_table<V, iq4_nl::kLevels, 128>();
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      const auto low = V::load(panels.at, kScalesLow);
      const auto high = V::shorts_to_ints(panels.at, kScalesHigh);
      typename V::Ints isum[N];
      clear<V, N>(isum);
      add_group<N, 0>(panels, table, low, high, tokens, 8 * b, isum);
      add_group<N, 1>(panels, table, low, high, tokens, 8 * b + 1, isum);
      add_group<N, 2>(panels, table, low, high, tokens, 8 * b + 2, isum);
      add_group<N, 3>(panels, table, low, high, tokens, 8 * b + 3, isum);
      add_group<N, 4>(panels, table, low, high, tokens, 8 * b + 4, isum);
      add_group<N, 5>(panels, table, low, high, tokens, 8 * b + 5, isum);
      add_group<N, 6>(panels, table, low, high, tokens, 8 * b + 6, isum);
      add_group<N, 7>(panels, table, low, high, tokens, 8 * b + 7, isum);
      add_scaled<V, N>(V::halves(panels.at, 0), tokens, b, isum, acc);
    }
  }
};

}  // namespace
}  // namespace lockstep::quant
