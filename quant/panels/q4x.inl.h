// Q4X times Q8_0 activations. Every group of every row may use another codebook, so a register
// holds columns of whole rows in its 128-bit parts: each is looked up in its row's own codebook.
// For many tokens the looked-up levels are then transposed into steps, one row per 32-bit lane, as
// all other formats have them; for one token it is cheaper to transpose the sums.
#pragma once

#include "quant/panels/panel.inl.h"

namespace lockstep::quant {
namespace {

template <class V>
struct TileQ4X {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1096;
  static constexpr std::size_t kBookBits = 64;
  static constexpr std::size_t kQuants = 72;
  static constexpr std::size_t kBooks = 4;
  static constexpr std::size_t kLevels = 16;
  static constexpr std::size_t kBase = 64;
  static constexpr std::size_t kShift = 68;
  static constexpr int kOffset = kMovedUp<V, 64>;

  using Ints = typename V::Ints;

  // The side data as the loop reads it, levels moved up where they must be unsigned. Entry i:
  // codebook i % 4, then codebook i / 4.
  alignas(32) std::byte books[kBooks * kBooks][2 * kLevels];
  float base;
  int shift;

  explicit TileQ4X(const std::byte* side) noexcept {
    for (std::size_t i = 0; i < kBooks * kBooks; ++i) {
      for (std::size_t j = 0; j < kLevels; ++j) {
        const auto moved_up = [](std::byte level) noexcept {
          return static_cast<std::byte>(static_cast<unsigned char>(level) + kOffset);
        };
        books[i][j] = moved_up(side[i % kBooks * kLevels + j]);
        books[i][kLevels + j] = moved_up(side[i / kBooks * kLevels + j]);
      }
    }
    __builtin_memcpy(&base, side + kBase, sizeof base);
    shift = static_cast<int>(side[kShift]);
  }

  // Scales of the rows from their bytes: a shift makes an f16 of the code, the sign goes to its
  // top.
  LOCKSTEP_INLINE typename V::Floats scales(Ints bytes) const noexcept {
    const auto magnitude = V::shift_left32(V::bit_and(bytes, V::set32(63)), shift);
    const auto sign = V::template shift_left32<9>(V::bit_and(bytes, V::set32(64)));
    return V::mul(V::set(base), V::from_half_bits(V::bit_or(magnitude, sign)));
  }

  // The books of rows p and p + 4 of every panel, for p = 0..3.
  LOCKSTEP_INLINE void load_books(const Panels<V>& panels, std::size_t g,
                                  Ints (&levels)[4]) const noexcept {
    unsigned pairs[V::kPanels];
    for (std::size_t i = 0; i < V::kPanels; ++i) {
      pairs[i] = V::top_bits(panels.at[i] + 8 * g) |
                 static_cast<unsigned>(panels.at[i][kBookBits + g]) << 8;
    }
#pragma GCC unroll 4
    for (unsigned p = 0; p < 4; ++p) {
      const std::byte* at[V::kPanels];
      for (std::size_t i = 0; i < V::kPanels; ++i) at[i] = books[pairs[i] >> (4 * p) & 15u];
      levels[p] = V::load(at, 0);
    }
  }

  // Row lanes from rows in 128-bit parts: lane r % 4 of part r / 4 of to[s] = lane s of from[r].
  LOCKSTEP_INLINE static void transpose(const Ints (&from)[4], Ints (&to)[4]) noexcept {
    const Ints a = V::unpack_low32(from[0], from[1]);
    const Ints b = V::unpack_low32(from[2], from[3]);
    const Ints c = V::unpack_high32(from[0], from[1]);
    const Ints d = V::unpack_high32(from[2], from[3]);
    to[0] = V::unpack_low64(a, b);
    to[1] = V::unpack_high64(a, b);
    to[2] = V::unpack_low64(c, d);
    to[3] = V::unpack_high64(c, d);
  }

  template <int N>
  LOCKSTEP_INLINE static void dot_all(const Ints (&first)[4], const Ints (&second)[4],
                                      const Tokens<V, N>& tokens, std::size_t column,
                                      Ints (&isum)[N]) noexcept {
    Ints steps[4];
    if constexpr (N == 1) {
      Ints sums[4];
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) {
        sums[p] = V::dot(V::set32(0), first[p], tokens.sixteen(0, column));
        sums[p] = V::dot(sums[p], second[p], tokens.sixteen(0, column + 16));
      }
      transpose(sums, steps);
      const Ints left = V::add(steps[0], steps[1]);
      isum[0] = V::add(isum[0], V::add(left, V::add(steps[2], steps[3])));
    } else {
      transpose(first, steps);
      dot_sixteen<V, N>(steps, tokens, column, isum);
      transpose(second, steps);
      dot_sixteen<V, N>(steps, tokens, column + 16, isum);
    }
  }

  template <int N>
  LOCKSTEP_INLINE void compute(Panels<V> panels, std::size_t blocks, const Tokens<V, N>& tokens,
                               typename V::Floats (&acc)[N]) const noexcept {
    for (std::size_t b = 0; b < blocks; ++b, panels.advance(kBlockBytes)) {
      panels.prefetch(kBlockBytes);
      for (std::size_t g = 0; g < 8; ++g) {
        const std::size_t run = 8 * b + g;
        Ints levels[4], first[4], second[4], isum[N];
        load_books(panels, g, levels);
#pragma GCC unroll 4
        for (std::size_t p = 0; p < 4; ++p) {
          const Ints pairs = V::load(panels.at, kQuants + 128 * g + 32 * p);
          first[p] = V::lookup(levels[p], V::template bits<0, 4>(pairs));
          second[p] = V::lookup(levels[p], V::template bits<4, 4>(pairs));
        }
        begin_below<V, N, kOffset>(tokens, run, isum);
        dot_all<N>(first, second, tokens, 32 * run, isum);
        add_scaled<V, N>(scales(V::bytes_to_ints(panels.at, 8 * g)), tokens, run, isum, acc);
      }
    }
  }
};

}  // namespace
}  // namespace lockstep::quant
