// One panel of 8 rows in a 256-bit register, for the kernels of quant/panels/. With 16 registers a
// tile has 4 tokens. AVX-VNNI and AVX-512 encode the dot products differently: class Dots has
//     bytes(acc, u, s)    acc + four products of unsigned by signed bytes in every lane
//     shorts(acc, a, b)   acc + two products of int16
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstddef>

#include "quant/panels/x86.h"

namespace lockstep::quant {
namespace {

template <class Dots>
struct Ymm : X86Vector<Ymm<Dots>> {
  using Ints = __m256i;
  using SumPair = Ints;
  using Floats = __m256;
  static constexpr std::size_t kPanels = 1;
  static constexpr std::size_t kRows = 8;
  static constexpr std::size_t kTileTokens = 4;

  // 32, 16 and 8 bytes of the panel.
  LOCKSTEP_INLINE static Ints load(const std::byte* const (&panels)[1], std::size_t at) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panels[0] + at));
  }
  LOCKSTEP_INLINE static __m128i load16(const std::byte* const (&panels)[1],
                                        std::size_t at) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(panels[0] + at));
  }
  LOCKSTEP_INLINE static Floats halves(const std::byte* const (&panels)[1],
                                       std::size_t at) noexcept {
    return _mm256_cvtph_ps(load16(panels, at));
  }
  LOCKSTEP_INLINE static Ints shorts_to_ints(const std::byte* const (&panels)[1],
                                             std::size_t at) noexcept {
    return _mm256_cvtepu16_epi32(load16(panels, at));
  }
  LOCKSTEP_INLINE static Ints bytes_to_ints(const std::byte* const (&panels)[1],
                                            std::size_t at) noexcept {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(panels[0] + at)));
  }
  LOCKSTEP_INLINE static Floats from_half_bits(Ints bits) noexcept {
    return _mm256_cvtph_ps(
        _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)));
  }

  LOCKSTEP_INLINE static Ints broadcast32(const std::byte* at) noexcept {
    return _mm256_castps_si256(_mm256_set1_ps(*reinterpret_cast<const float*>(at)));
  }
  LOCKSTEP_INLINE static Floats broadcast_float(const std::byte* at) noexcept {
    return _mm256_set1_ps(*reinterpret_cast<const float*>(at));
  }
  LOCKSTEP_INLINE static Ints repeat128(__m128i x) noexcept {
    return _mm256_broadcastsi128_si256(x);
  }
  LOCKSTEP_INLINE static Ints set8(int x) noexcept {
    return _mm256_set1_epi8(static_cast<char>(x));
  }
  LOCKSTEP_INLINE static Ints set32(int x) noexcept { return _mm256_set1_epi32(x); }
  LOCKSTEP_INLINE static Floats set(float x) noexcept { return _mm256_set1_ps(x); }

  LOCKSTEP_INLINE static Ints bit_and(Ints a, Ints b) noexcept { return _mm256_and_si256(a, b); }
  LOCKSTEP_INLINE static Ints bit_or(Ints a, Ints b) noexcept { return _mm256_or_si256(a, b); }
  LOCKSTEP_INLINE static Ints bit_xor(Ints a, Ints b) noexcept { return _mm256_xor_si256(a, b); }
  LOCKSTEP_INLINE static Ints add(Ints a, Ints b) noexcept { return _mm256_add_epi32(a, b); }
  LOCKSTEP_INLINE static Ints sub(Ints a, Ints b) noexcept { return _mm256_sub_epi32(a, b); }
  LOCKSTEP_INLINE static Ints sub8(Ints a, Ints b) noexcept { return _mm256_sub_epi8(a, b); }
  LOCKSTEP_INLINE static Ints mul(Ints a, Ints b) noexcept { return _mm256_mullo_epi32(a, b); }
  LOCKSTEP_INLINE static Ints max(Ints a, Ints b) noexcept { return _mm256_max_epi32(a, b); }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right16(Ints x) noexcept {
    return _mm256_srli_epi16(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_left32(Ints x) noexcept {
    return _mm256_slli_epi32(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right32(Ints x) noexcept {
    return _mm256_srli_epi32(x, kBits);
  }
  template <int kBits>
  LOCKSTEP_INLINE static Ints shift_right_signed32(Ints x) noexcept {
    return _mm256_srai_epi32(x, kBits);
  }
  LOCKSTEP_INLINE static Ints shift_right16(Ints x, int bits) noexcept {
    return _mm256_srl_epi16(x, _mm_cvtsi32_si128(bits));
  }
  LOCKSTEP_INLINE static Ints shift_left16(Ints x, int bits) noexcept {
    return _mm256_sll_epi16(x, _mm_cvtsi32_si128(bits));
  }
  LOCKSTEP_INLINE static Ints shift_left32(Ints x, int bits) noexcept {
    return _mm256_sll_epi32(x, _mm_cvtsi32_si128(bits));
  }
  // Byte index[i] of the same 128 bits of the table.
  LOCKSTEP_INLINE static Ints lookup(Ints table, Ints index) noexcept {
    return _mm256_shuffle_epi8(table, index);
  }
  LOCKSTEP_INLINE static Ints unpack_low32(Ints a, Ints b) noexcept {
    return _mm256_unpacklo_epi32(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_high32(Ints a, Ints b) noexcept {
    return _mm256_unpackhi_epi32(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_low64(Ints a, Ints b) noexcept {
    return _mm256_unpacklo_epi64(a, b);
  }
  LOCKSTEP_INLINE static Ints unpack_high64(Ints a, Ints b) noexcept {
    return _mm256_unpackhi_epi64(a, b);
  }

  // acc + four products of unsigned by signed bytes.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints weights, Ints activations) noexcept {
    return Dots::bytes(acc, weights, activations);
  }
  // acc + two products of int16.
  LOCKSTEP_INLINE static Ints dot_sums(Ints acc, Ints sums, Ints factors) noexcept {
    return Dots::shorts(acc, sums, factors);
  }

  LOCKSTEP_INLINE static Floats as_floats(Ints x) noexcept { return _mm256_castsi256_ps(x); }
  LOCKSTEP_INLINE static Floats to_float(Ints x) noexcept { return _mm256_cvtepi32_ps(x); }
  LOCKSTEP_INLINE static Floats mul(Floats a, Floats b) noexcept { return _mm256_mul_ps(a, b); }
  LOCKSTEP_INLINE static Floats fma(Floats a, Floats b, Floats c) noexcept {
    return _mm256_fmadd_ps(a, b, c);
  }
  LOCKSTEP_INLINE static Floats fnma(Floats a, Floats b, Floats c) noexcept {
    return _mm256_fnmadd_ps(a, b, c);
  }
  // The first `rows` (1..8) lanes.
  LOCKSTEP_INLINE static void store(Floats x, float* y, std::size_t rows) noexcept {
    if (rows == kRows) return _mm256_storeu_ps(y, x);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(rows)), lane);
    _mm256_maskstore_ps(y, mask, x);
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
