// What the matmul kernels on panels share, written once over the class V of an instruction set's
// vector.h: the walk over tokens and panels, and the products of steps. All instructions that
// multiply bytes keep to 32-bit lanes, so the formats need not know them; they differ in whether
// weights are signed. Where they are not (vpdpbusd), levels are moved up by an offset, which the
// activation sums take off again: sum (w + o) y - o sum y. All integer sums are exact; the order of
// the float additions is that of vec_dot.
//
// A kernel is a class Tile with
//     static constexpr std::size_t kBlockValues, kBlockBytes;   bytes: of the packed block, 8 rows
//     template <int N> void compute(panels, blocks, tokens, acc)
// which computes V::kRows rows times N tokens over all blocks, one lane per output element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "quant/kernels.h"

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

// KEEP has a sum finished where the source says so. Compilers else put the multiplications of a
// whole block of 256 columns off and spill what they wait for (Q4_K, AVX-512, 128 tokens, one core:
// clang 14 at half the speed, g++ 12 at 0.91).
#if defined(__x86_64__)
#define LOCKSTEP_KEEP(sum) asm volatile("" : "+v"(sum))
#else
#define LOCKSTEP_KEEP(sum) (void)0
#endif
// A fence holds the order of loads, which clang moves up to the same effect. g++ does better
// without (0.85 to 1.0).
#if defined(__clang__)
#define LOCKSTEP_FENCE() asm volatile("" ::: "memory")
#else
#define LOCKSTEP_FENCE() (void)0
#endif

namespace lockstep::quant {
namespace {

constexpr std::size_t kPanelOf = 8;  // rows of a panel

// Activations that should stay in the second-level cache while the panels stream by.
constexpr std::size_t kTokenBlockBytes = 256 * 1024;
// How far ahead of the one-token loop weights are asked for.
constexpr std::size_t kPrefetchBytes = 8192;

// The same block of the panels that lie side by side in one register.
template <class V>
struct Panels {
  const std::byte* at[V::kPanels];

  LOCKSTEP_INLINE void advance(std::size_t bytes) noexcept {
    for (auto& panel : at) panel += bytes;
  }
  LOCKSTEP_INLINE void prefetch(std::size_t bytes) const noexcept {
    for (const std::byte* panel : at) {
      for (std::size_t i = 0; i < bytes; i += 64) V::prefetch(panel + kPrefetchBytes + i);
    }
  }
};

// Activations of N tokens: where each starts, and the offsets of the parts, the same for all.
template <class V, int N>
struct Tokens {
  const std::byte* base[N];
  std::size_t sums, scale;

  LOCKSTEP_INLINE const std::byte* at(int t, std::size_t column) const noexcept {
    return base[t] + column;
  }
  // Sixteen in every 128 bits.
  LOCKSTEP_INLINE typename V::Ints sixteen(int t, std::size_t column) const noexcept {
    return V::broadcast128(base[t] + column);
  }
  // Two neighbouring sums of 16. i: index of the first, even.
  LOCKSTEP_INLINE typename V::SumPair sum_pair(int t, std::size_t i) const noexcept {
    return V::load_sums(base[t] + sums + i * sizeof(std::int16_t));
  }
  LOCKSTEP_INLINE typename V::Floats scale_of(int t, std::size_t block) const noexcept {
    return V::broadcast_float(base[t] + scale + block * sizeof(float));
  }
};

template <class V, int N>
LOCKSTEP_INLINE void clear(typename V::Ints (&sums)[N]) noexcept {
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) sums[t] = V::set32(0);
}
template <class V, int N>
LOCKSTEP_INLINE void clear(typename V::Floats (&sums)[N]) noexcept {
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) sums[t] = V::set(0.0f);
}

// Sums of products while steps are added to them. An instruction set may keep other lanes than
// rows meanwhile, and specialize this.
template <class V, int N>
class Products {
 public:
  // Continues the sums of `start`.
  LOCKSTEP_INLINE explicit Products(const typename V::Ints (&start)[N]) noexcept {
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) sum_[t] = start[t];
  }
  // Two steps with the columns from `column` on, 8 in a row.
  LOCKSTEP_INLINE void add(typename V::Ints first, typename V::Ints second,
                           const Tokens<V, N>& tokens, std::size_t column) noexcept {
    LOCKSTEP_FENCE();
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t)
      sum_[t] = V::template dot_at<0>(sum_[t], first, tokens.at(t, column));
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t)
      sum_[t] = V::template dot_at<1>(sum_[t], second, tokens.at(t, column));
  }
  // Into row lanes.
  LOCKSTEP_INLINE void store(typename V::Ints (&isum)[N]) const noexcept {
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) isum[t] = sum_[t];
  }

 private:
  typename V::Ints sum_[N];
};

// isum[t] += products of 16 columns in a row.
template <class V, int N>
LOCKSTEP_INLINE void dot_sixteen(const typename V::Ints (&steps)[4], const Tokens<V, N>& tokens,
                                 std::size_t column, typename V::Ints (&isum)[N]) noexcept {
  Products<V, N> products(isum);
  products.add(steps[0], steps[1], tokens, column);
  products.add(steps[2], steps[3], tokens, column + 8);
  products.store(isum);
}

// isum[t] = the two factors of every lane times (the sum of 16 activations, the sum of the next 16)
template <class V, int N, class Factors>
LOCKSTEP_INLINE void begin_with_sums(Factors factors, const Tokens<V, N>& tokens, std::size_t run,
                                     typename V::Ints (&isum)[N]) noexcept {
  LOCKSTEP_FENCE();
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    isum[t] = V::dot_sums(V::set32(0), tokens.sum_pair(t, 2 * run), factors);
  }
}

// How far levels of a table or of signed bytes are moved up: only where weights must be unsigned.
template <class V, int kOffset>
constexpr int kMovedUp = V::kSigned ? 0 : kOffset;

// The start of the integer sum over a run of 32 columns whose weights are kOffset too high.
template <class V, int N, int kOffset>
LOCKSTEP_INLINE void begin_below(const Tokens<V, N>& tokens, std::size_t run,
                                 typename V::Ints (&isum)[N]) noexcept {
  if constexpr (kOffset == 0) {
    clear<V, N>(isum);
  } else {
    begin_with_sums<V, N>(V::both(V::set32(-kOffset)), tokens, run, isum);
  }
}

// acc[t] += d * (scale of token t in activation block `block`) * isum[t]
template <class V, int N>
LOCKSTEP_INLINE void add_scaled(typename V::Floats d, const Tokens<V, N>& tokens, std::size_t block,
                                const typename V::Ints (&isum)[N],
                                typename V::Floats (&acc)[N]) noexcept {
  LOCKSTEP_FENCE();
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    acc[t] = V::fma(V::mul(d, tokens.scale_of(t, block)), V::to_float(isum[t]), acc[t]);
  }
}

template <class V, int N, class Tile>
LOCKSTEP_INLINE void run_tile(const Tile& tile, const MatmulCall& call,
                              const ActivationLayout& layout, const Panels<V>& panels,
                              std::size_t token, float* y, std::size_t rows) noexcept {
  Tokens<V, N> tokens;
  tokens.sums = layout.sums;
  tokens.scale = layout.scale;
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    tokens.base[t] =
        call.activations + (token + static_cast<std::size_t>(t)) * call.activation_stride;
  }
  typename V::Floats acc[N];
  clear<V, N>(acc);
  tile.template compute<N>(panels, call.k / Tile::kBlockValues, tokens, acc);
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) {
    V::store(acc[t], y + static_cast<std::size_t>(t) * call.y_stride, rows);
  }
}

// Tokens [begin, end) times one set of panels, the widest tile first.
template <class V, class Tile>
void run_tokens(const Tile& tile, const MatmulCall& call, const ActivationLayout& layout,
                const Panels<V>& panels, std::size_t row, std::size_t begin, std::size_t end,
                std::size_t rows) noexcept {
  float* y = call.y + begin * call.y_stride + row;
  std::size_t t = begin;
  const auto run_tiles = [&](auto tokens) noexcept {
    constexpr std::size_t kTokens = tokens;
    if constexpr (kTokens <= V::kTileTokens) {
      for (; t + kTokens <= end; t += kTokens, y += kTokens * call.y_stride) {
        run_tile<V, static_cast<int>(kTokens)>(tile, call, layout, panels, t, y, rows);
      }
    }
  };
  run_tiles(std::integral_constant<std::size_t, 8>());
  run_tiles(std::integral_constant<std::size_t, 4>());
  run_tiles(std::integral_constant<std::size_t, 2>());
  run_tiles(std::integral_constant<std::size_t, 1>());
}

// A block of tokens whose activations fit the cache, times every panel; a panel is read from memory
// once per block. Where a register takes two panels and one is left over, it takes that one twice.
template <class V, class Tile>
void run_panels(const MatmulCall& call, Format activation, const Tile& tile = {}) noexcept {
  const ActivationLayout layout = ActivationLayout::of(activation, call.k);
  const std::size_t panel_bytes = call.k / Tile::kBlockValues * Tile::kBlockBytes;
  constexpr std::size_t kGroup = V::kTileTokens;
  std::size_t block_tokens = kTokenBlockBytes / (layout.bytes + 1) / kGroup * kGroup;
  if (block_tokens < 2 * kGroup) block_tokens = 2 * kGroup;
  for (std::size_t begin = 0; begin < call.tokens; begin += block_tokens) {
    const std::size_t rest = call.tokens - begin;
    const std::size_t end = begin + (rest < block_tokens ? rest : block_tokens);
    const std::byte* panel = call.panels;
    for (std::size_t row = 0; row < call.rows; row += V::kRows, panel += V::kPanels * panel_bytes) {
      const std::size_t left = call.rows - row;
      const std::size_t rows = left < V::kRows ? left : V::kRows;
      Panels<V> panels;
      for (std::size_t i = 0; i < V::kPanels; ++i) {
        panels.at[i] = panel + (i * kPanelOf < rows ? i * panel_bytes : 0);
      }
      run_tokens<V>(tile, call, layout, panels, row, begin, end, rows);
    }
  }
}

// The same for a call with one token.
template <class V, class Tile>
void run_one_token(const MatmulCall& call, Format activation, const Tile& tile) noexcept {
  static_assert(V::kPanels == 1);
  const ActivationLayout layout = ActivationLayout::of(activation, call.k);
  const std::size_t panel_bytes = call.k / Tile::kBlockValues * Tile::kBlockBytes;
  Panels<V> panels{{call.panels}};
  for (std::size_t row = 0; row < call.rows; row += V::kRows, panels.advance(panel_bytes)) {
    const std::size_t left = call.rows - row;
    run_tile<V, 1>(tile, call, layout, panels, 0, call.y + row, left < V::kRows ? left : V::kRows);
  }
}

}  // namespace
}  // namespace lockstep::quant
