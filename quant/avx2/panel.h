// What the AVX2 matmul kernels share: the walk over tokens and panels, broadcast loads, and the
// store of a finished tile. A kernel is a class Tile with
//     static constexpr std::size_t kBlockValues, kBlockBytes;       bytes: of the packed block, 8
//     rows template <int N> void compute(panel, blocks, tokens, acc)
// which computes 8 rows times N tokens over all blocks, one accumulator lane per output element. It
// is static, or a const member where the tensor brings side data.
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "quant/kernels.h"

#define LOCKSTEP_INLINE inline __attribute__((always_inline))

namespace lockstep::quant::avx2 {
namespace {

constexpr std::size_t kRows = 8;

// Tokens computed together: each weight that is loaded and unpacked serves this many.
constexpr int kTileTokens = 4;
// Activations that should stay in the second-level cache while the panels stream by.
constexpr std::size_t kTokenBlockBytes = 128 * 1024;
// How far ahead of every loop weights are asked for: below 2 KiB it is slower than no prefetch at
// all, from 8 KiB on never slower; the first-level cache holds it easily. Tiles of several tokens
// ask too: up to 16 tokens, weights still come from memory, and the last tile of a panel asks for
// the start of the next. Rejected: asking a whole panel ahead, which was no faster.
constexpr std::size_t kPrefetchBytes = 8192;

// Activations of N tokens: where each starts, and the offsets of the parts, the same for all.
template <int N>
struct Tokens {
  const std::byte* base[N];
  std::size_t sums, scale;

  const std::int8_t* q(int t, std::size_t i) const noexcept {
    return reinterpret_cast<const std::int8_t*>(base[t]) + i;
  }
  // Two neighbouring sums of 16, in every 32-bit lane. i: index of the first, even.
  __m256i sum_pair(int t, std::size_t i) const noexcept {
    return _mm256_castps_si256(
        _mm256_broadcast_ss(reinterpret_cast<const float*>(base[t] + sums) + i / 2));
  }
  __m256 scale_of(int t, std::size_t block) const noexcept {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(base[t] + scale) + block);
  }
};

LOCKSTEP_INLINE __m256i load_step(const std::byte* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

LOCKSTEP_INLINE __m256 load_scales(const std::byte* at) noexcept {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

// Four activations in every 32-bit lane.
LOCKSTEP_INLINE __m256i broadcast4(const std::int8_t* q) noexcept {
  return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(q)));
}

// Makes the compiler take `x` as it is now. g++ 12 would otherwise reassociate a chain of integer
// additions into a tree, which keeps more partial sums alive than there are registers.
LOCKSTEP_INLINE void pin(__m256i& x) noexcept { asm("" : "+x"(x)); }

LOCKSTEP_INLINE void prefetch(const std::byte* at, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + kPrefetchBytes + i), _MM_HINT_T0);
  }
}

// acc[t] += d * (scale of token t in activation block `block`) * isum[t]
template <int N>
LOCKSTEP_INLINE void add_scaled(__m256 d, const Tokens<N>& tokens, std::size_t block,
                                const __m256i (&isum)[N], __m256 (&acc)[N]) noexcept {
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, tokens.scale_of(t, block)),
                             _mm256_cvtepi32_ps(isum[t]), acc[t]);
  }
}

// The same, and then the minimum m times the sum of the activations of this block of 32.
template <int N>
LOCKSTEP_INLINE void add_scaled_and_min(__m256 d, __m256 m, const Tokens<N>& tokens,
                                        std::size_t block, const __m256i (&isum)[N],
                                        __m256 (&acc)[N]) noexcept {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) {
    const __m256 da = tokens.scale_of(t, block);
    const __m256i total = _mm256_madd_epi16(tokens.sum_pair(t, 2 * block), ones);
    acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, da), _mm256_cvtepi32_ps(isum[t]), acc[t]);
    acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(m, da), _mm256_cvtepi32_ps(total), acc[t]);
  }
}

// Computes one tile of N tokens; stores `rows` (1..8) values per token.
template <class Tile, int N>
void run_tile(const Tile& tile, const MatmulCall& call, const ActivationLayout& layout,
              const std::byte* panel, std::size_t token, float* y, std::size_t rows) noexcept {
  Tokens<N> tokens;
  tokens.sums = layout.sums;
  tokens.scale = layout.scale;
  for (int t = 0; t < N; ++t) {
    tokens.base[t] =
        call.activations + (token + static_cast<std::size_t>(t)) * call.activation_stride;
  }
  __m256 acc[N];
  for (int t = 0; t < N; ++t) acc[t] = _mm256_setzero_ps();
  tile.template compute<N>(panel, call.k / Tile::kBlockValues, tokens, acc);
  if (rows == kRows) {
    for (int t = 0; t < N; ++t)
      _mm256_storeu_ps(y + static_cast<std::size_t>(t) * call.y_stride, acc[t]);
    return;
  }
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(rows)), lane);
  for (int t = 0; t < N; ++t) {
    _mm256_maskstore_ps(y + static_cast<std::size_t>(t) * call.y_stride, mask, acc[t]);
  }
}

// A block of tokens whose activations fit the cache, times every panel; a panel is read from memory
// once per block.
template <class Tile>
void run_panels(const MatmulCall& call, Format activation, const Tile& tile = {}) noexcept {
  const ActivationLayout layout = ActivationLayout::of(activation, call.k);
  const std::size_t panel_bytes = call.k / Tile::kBlockValues * Tile::kBlockBytes;
  constexpr std::size_t kGroup = kTileTokens;
  std::size_t block_tokens = kTokenBlockBytes / (layout.bytes + 1) / kGroup * kGroup;
  if (block_tokens < 2 * kGroup) block_tokens = 2 * kGroup;
  for (std::size_t begin = 0; begin < call.tokens; begin += block_tokens) {
    const std::size_t rest = call.tokens - begin;
    const std::size_t end = begin + (rest < block_tokens ? rest : block_tokens);
    const std::byte* panel = call.panels;
    for (std::size_t row = 0; row < call.rows; row += kRows, panel += panel_bytes) {
      const std::size_t rows = call.rows - row < kRows ? call.rows - row : kRows;
      for (std::size_t t = begin; t < end; t += kGroup) {
        float* y = call.y + t * call.y_stride + row;
        switch (end - t) {
          case 1:
            run_tile<Tile, 1>(tile, call, layout, panel, t, y, rows);
            break;
          case 2:
            run_tile<Tile, 2>(tile, call, layout, panel, t, y, rows);
            break;
          case 3:
            run_tile<Tile, 3>(tile, call, layout, panel, t, y, rows);
            break;
          default:
            run_tile<Tile, kTileTokens>(tile, call, layout, panel, t, y, rows);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::quant::avx2

#endif
