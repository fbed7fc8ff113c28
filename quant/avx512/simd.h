// Sixteen lanes in one 512-bit register, for row_kernels.inl.h. Where a register must be folded the
// two halves are handed to the AVX2 form, whose tree is the same.
#pragma once

#include "quant/avx2/simd.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)

namespace lockstep::quant {
namespace {

struct Avx512Simd {
  static constexpr int kRegisters = 32;
  using Floats = __m512;
  using Ints = __m512i;

  static Floats set(float x) noexcept { return _mm512_set1_ps(x); }
  static Floats load(const float* x) noexcept { return _mm512_loadu_ps(x); }
  static Floats set_f16(std::uint16_t x) noexcept {
    return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(x)));
  }
  static __m256i load_halves(const std::uint16_t* x) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  static Floats load_f16(const std::uint16_t* x) noexcept {
    return _mm512_cvtph_ps(load_halves(x));
  }
  static Floats load_bf16(const std::uint16_t* x) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_halves(x)), 16));
  }
  static void store(Floats x, float* y) noexcept { _mm512_storeu_ps(y, x); }
  static void store_f16(Floats x, std::uint16_t* y) noexcept {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtps_ph(x, kNearest));
  }
  static Ints load_i8(const std::int8_t* x) noexcept {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static void store_i8(Ints x, std::int8_t* y) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm512_cvtepi32_epi8(x));
  }

  static void transpose16(const float* rows, std::size_t stride, float* columns) noexcept {
    Avx2Simd::transpose16(rows, stride, columns);
  }

  static Floats add(Floats a, Floats b) noexcept { return _mm512_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) noexcept { return _mm512_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) noexcept { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) noexcept { return _mm512_div_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) noexcept { return _mm512_fmadd_ps(a, b, c); }
  static Floats min(Floats a, Floats b) noexcept { return _mm512_min_ps(a, b); }
  static Floats max(Floats a, Floats b) noexcept { return _mm512_max_ps(a, b); }
  static Floats or_nan(Floats y, Floats x) noexcept {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
  }

  static Ints round(Floats x) noexcept { return _mm512_cvtps_epi32(x); }
  static Floats to_float(Ints n) noexcept { return _mm512_cvtepi32_ps(n); }
  static Floats power_of_two(Ints n) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
  }
  static Ints halve(Ints n) noexcept { return _mm512_srai_epi32(n, 1); }
  static Ints sub_ints(Ints a, Ints b) noexcept { return _mm512_sub_epi32(a, b); }
  static Ints abs_bits(Floats x) noexcept {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
  }
  static Ints max_ints(Ints a, Ints b) noexcept { return _mm512_max_epi32(a, b); }

  static Avx2Simd::Floats halves(Floats x) noexcept {
    return {_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)};
  }
  static Avx2Simd::Ints halves(Ints x) noexcept {
    return {_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1)};
  }
  static float reduce_add(Floats x) noexcept { return Avx2Simd::reduce_add(halves(x)); }
  static void reduce_add4(const Floats (&x)[4], float* sums) noexcept {
    const Avx2Simd::Floats four[4] = {halves(x[0]), halves(x[1]), halves(x[2]), halves(x[3])};
    Avx2Simd::reduce_add4(four, sums);
  }
  static float reduce_max(Floats x) noexcept { return Avx2Simd::reduce_max(halves(x)); }
  static std::int32_t reduce_add_ints(Ints x) noexcept {
    return Avx2Simd::reduce_add_ints(halves(x));
  }
  static std::int32_t reduce_max_ints(Ints x) noexcept {
    return Avx2Simd::reduce_max_ints(halves(x));
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
