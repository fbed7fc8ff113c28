// Two panels of 8 rows in one 512-bit register, for the kernels of quant/panels/: the first panel
// in the lower half. With 32 registers a tile has 8 tokens.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

#include <immintrin.h>

#include <cstddef>

#include "quant/panels/panel.inl.h"
#include "quant/panels/ymm.h"

namespace lockstep::quant::avx512 {
namespace {

struct Vector {
  using Ints = __m512i;
  using Floats = __m512;
  using SumPair = Ints;
  static constexpr bool kSigned = false;
  static constexpr std::size_t kPanels = 2;
  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kTileTokens = 8;

  LOCKSTEP_INLINE static void prefetch(const std::byte* at) noexcept {
    _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
  }
  // 32, 16 and 8 bytes of each panel.
  LOCKSTEP_INLINE static Ints load(const std::byte* const (&panels)[2], std::size_t at) noexcept {
    const auto half = [&](int i) noexcept {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panels[i] + at));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(0)), half(1), 1);
  }
  LOCKSTEP_INLINE static __m256i load16(const std::byte* const (&panels)[2],
                                        std::size_t at) noexcept {
    const auto half = [&](int i) noexcept {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(panels[i] + at));
    };
    return _mm256_inserti128_si256(_mm256_castsi128_si256(half(0)), half(1), 1);
  }
  LOCKSTEP_INLINE static Floats halves(const std::byte* const (&panels)[2],
                                       std::size_t at) noexcept {
    return _mm512_cvtph_ps(load16(panels, at));
  }
  LOCKSTEP_INLINE static Ints shorts_to_ints(const std::byte* const (&panels)[2],
                                             std::size_t at) noexcept {
    return _mm512_cvtepu16_epi32(load16(panels, at));
  }
  LOCKSTEP_INLINE static Ints bytes_to_ints(const std::byte* const (&panels)[2],
                                            std::size_t at) noexcept {
    const auto half = [&](int i) noexcept {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(panels[i] + at));
    };
    return _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(half(0), half(1)));
  }
  LOCKSTEP_INLINE static Floats from_half_bits(Ints bits) noexcept {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits));
  }

  LOCKSTEP_INLINE static Ints broadcast32(const std::byte* at) noexcept {
    return _mm512_castps_si512(_mm512_set1_ps(*reinterpret_cast<const float*>(at)));
  }
  LOCKSTEP_INLINE static Ints broadcast128(const std::byte* at) noexcept {
    return repeat128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  LOCKSTEP_INLINE static Floats broadcast_float(const std::byte* at) noexcept {
    return _mm512_set1_ps(*reinterpret_cast<const float*>(at));
  }
  LOCKSTEP_INLINE static Ints repeat128(__m128i x) noexcept { return _mm512_broadcast_i32x4(x); }
  LOCKSTEP_INLINE static Ints set8(int x) noexcept {
    return _mm512_set1_epi8(static_cast<char>(x));
  }
  LOCKSTEP_INLINE static Ints set32(int x) noexcept { return _mm512_set1_epi32(x); }
  LOCKSTEP_INLINE static Floats set(float x) noexcept { return _mm512_set1_ps(x); }

  LOCKSTEP_INLINE static Ints bit_and(Ints a, Ints b) noexcept { return _mm512_and_si512(a, b); }
  LOCKSTEP_INLINE static Ints bit_or(Ints a, Ints b) noexcept { return _mm512_or_si512(a, b); }
  LOCKSTEP_INLINE static Ints bit_xor(Ints a, Ints b) noexcept { return _mm512_xor_si512(a, b); }
  LOCKSTEP_INLINE static Ints add(Ints a, Ints b) noexcept { return _mm512_add_epi32(a, b); }
  LOCKSTEP_INLINE static Ints sub(Ints a, Ints b) noexcept { return _mm512_sub_epi32(a, b); }
  LOCKSTEP_INLINE static Ints sub8(Ints a, Ints b) noexcept { return _mm512_sub_epi8(a, b); }
  LOCKSTEP_INLINE static Ints mul(Ints a, Ints b) noexcept { return _mm512_mullo_epi32(a, b); }
  LOCKSTEP_INLINE static Ints max(Ints a, Ints b) noexcept { return _mm512_max_epi32(a, b); }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right16(Ints x) noexcept {
    return _mm512_srli_epi16(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_left32(Ints x) noexcept {
    return _mm512_slli_epi32(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right32(Ints x) noexcept {
    return _mm512_srli_epi32(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right_signed32(Ints x) noexcept {
    return _mm512_srai_epi32(x, kBits);
  }
  LOCKSTEP_INLINE static Ints shift_right16(Ints x, int bits) noexcept {
    return _mm512_srl_epi16(x, _mm_cvtsi32_si128(bits));
  }
  LOCKSTEP_INLINE static Ints shift_left16(Ints x, int bits) noexcept {
    return _mm512_sll_epi16(x, _mm_cvtsi32_si128(bits));
  }
  LOCKSTEP_INLINE static Ints shift_left32(Ints x, int bits) noexcept {
    return _mm512_sll_epi32(x, _mm_cvtsi32_si128(bits));
  }
  // Bits [kShift, kShift + kWidth) of every byte.
  template <int kShift, int kWidth>
  LOCKSTEP_INLINE static Ints bits(Ints x) noexcept {
    const Ints mask = set8((1 << kWidth) - 1);
    if constexpr (kShift == 0) return bit_and(x, mask);
    return bit_and(shift_right16<kShift>(x), mask);
  }
  // `x`, which has zeros under the mask, with those bits of `from`.
  LOCKSTEP_INLINE static Ints insert(Ints x, Ints from, Ints mask) noexcept {
    return bit_or(x, bit_and(from, mask));
  }
  // The top bits of 8 bytes.
  LOCKSTEP_INLINE static unsigned top_bits(const std::byte* at) noexcept {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return static_cast<unsigned>(_mm_movemask_epi8(bytes)) & 0xffu;
  }
  // Byte index[i] of the same 128 bits of the table.
  LOCKSTEP_INLINE static Ints lookup(Ints table, Ints index) noexcept {
    return _mm512_shuffle_epi8(table, index);
  }
  LOCKSTEP_INLINE static Ints unpack_low32(Ints a, Ints b) noexcept {
    return _mm512_unpacklo_epi32(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_high32(Ints a, Ints b) noexcept {
    return _mm512_unpackhi_epi32(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_low64(Ints a, Ints b) noexcept {
    return _mm512_unpacklo_epi64(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_high64(Ints a, Ints b) noexcept {
    return _mm512_unpackhi_epi64(a, b);
  }

  // acc + four products of unsigned by signed bytes.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints weights, Ints activations) noexcept {
    return _mm512_dpbusd_epi32(acc, weights, activations);
  }
  // acc + the products of step kStep of those whose activations begin at `at`.
  template <int kStep>
  LOCKSTEP_INLINE static Ints dot_at(Ints acc, Ints weights, const std::byte* at) noexcept {
    return dot(acc, weights, broadcast32(at + 4 * kStep));
  }
  // Two sums of activations in every lane, and two factors of 16 bits for them.
  LOCKSTEP_INLINE static Ints load_sums(const std::byte* at) noexcept { return broadcast32(at); }
  LOCKSTEP_INLINE static Ints pair(Ints first, Ints second) noexcept {
    return bit_or(bit_and(first, set32(0xffff)), shift_left32<16>(second));
  }
  LOCKSTEP_INLINE static Ints both(Ints factor) noexcept { return pair(factor, factor); }
  LOCKSTEP_INLINE static Ints dot_sums(Ints acc, Ints sums, Ints factors) noexcept {
    return _mm512_dpwssd_epi32(acc, sums, factors);
  }

  LOCKSTEP_INLINE static Floats as_floats(Ints x) noexcept { return _mm512_castsi512_ps(x); }
  LOCKSTEP_INLINE static Floats to_float(Ints x) noexcept { return _mm512_cvtepi32_ps(x); }
  LOCKSTEP_INLINE static Floats mul(Floats a, Floats b) noexcept { return _mm512_mul_ps(a, b); }
  LOCKSTEP_INLINE static Floats fma(Floats a, Floats b, Floats c) noexcept {
    return _mm512_fmadd_ps(a, b, c);
  }
  LOCKSTEP_INLINE static Floats fnma(Floats a, Floats b, Floats c) noexcept {
    return _mm512_fnmadd_ps(a, b, c);
  }
  // The first `rows` (1..16) lanes.
  LOCKSTEP_INLINE static void store(Floats x, float* y, std::size_t rows) noexcept {
    _mm512_mask_storeu_ps(y, static_cast<__mmask16>((1u << rows) - 1u), x);
  }
};

struct Dots {
  LOCKSTEP_INLINE static __m256i bytes(__m256i acc, __m256i u, __m256i s) noexcept {
    return _mm256_dpbusd_epi32(acc, u, s);
  }
  LOCKSTEP_INLINE static __m256i shorts(__m256i acc, __m256i a, __m256i b) noexcept {
    return _mm256_dpwssd_epi32(acc, a, b);
  }
};

// One panel in a 256-bit register, for one token: a worker that reads two panels at once gets a
// fifth less from memory than one that reads a single stream.
using OnePanel = Ymm<Dots>;

// One token or many.
template <template <class> class Tile, class... Side>
LOCKSTEP_INLINE void run(const MatmulCall& call, Format activation, Side... side) noexcept {
  if (call.tokens == 1) return run_one_token<OnePanel>(call, activation, Tile<OnePanel>(side...));
  run_panels<Vector>(call, activation, Tile<Vector>(side...));
}

}  // namespace
}  // namespace lockstep::quant::avx512

#endif
