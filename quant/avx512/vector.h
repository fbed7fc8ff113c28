// Two panels of 8 rows in one 512-bit register, for the kernels of quant/panels/: the first panel
// in the lower half. With 32 registers a tile has 8 tokens.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

#include <immintrin.h>

#include <cstddef>

#include "quant/panels/x86.h"
#include "quant/panels/ymm.h"

namespace lockstep::quant::avx512 {
namespace {

struct Vector : X86Vector<Vector> {
  using Ints = __m512i;
  using SumPair = Ints;
  using Floats = __m512;
  static constexpr std::size_t kPanels = 2;
  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kTileTokens = 8;

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
  // acc + two products of int16.
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

}  // namespace
}  // namespace lockstep::quant::avx512

#endif
