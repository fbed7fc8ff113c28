// Sixteen lanes in two 256-bit registers, for row_kernels.inl.h.
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace lockstep::quant {
namespace {

struct Avx2Simd {
  static constexpr int kRegisters = 8;
  struct Floats {
    __m256 lo, hi;  // lanes 0-7, 8-15
  };
  struct Ints {
    __m256i lo, hi;
  };

  static Floats set(float x) noexcept { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Floats set_f16(std::uint16_t x) noexcept {
    const __m256 all = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(x)));
    return {all, all};
  }
  static Floats load(const float* x) noexcept {
    return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
  }
  static __m128i load_halves(const std::uint16_t* x) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  }
  static Floats load_f16(const std::uint16_t* x) noexcept {
    return {_mm256_cvtph_ps(load_halves(x)), _mm256_cvtph_ps(load_halves(x + 8))};
  }
  static __m256 widen_bf16(__m128i x) noexcept {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static Floats load_bf16(const std::uint16_t* x) noexcept {
    return {widen_bf16(load_halves(x)), widen_bf16(load_halves(x + 8))};
  }
  static void store(Floats x, float* y) noexcept {
    _mm256_storeu_ps(y, x.lo);
    _mm256_storeu_ps(y + 8, x.hi);
  }
  static void store_f16(Floats x, std::uint16_t* y) noexcept {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_cvtps_ph(x.lo, kNearest));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + 8), _mm256_cvtps_ph(x.hi, kNearest));
  }
  static Ints load_i8(const std::int8_t* x) noexcept {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
  }
  // For values that fit: the narrowing saturates.
  static void store_i8(Ints x, std::int8_t* y) noexcept {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.lo, x.hi), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
  }

  // Four rows of the upper half of a register beside four of the lower, so that all that is left is
  // a transposition of 4 x 4 in either half.
  static void transpose8(const float* rows, std::size_t stride, float* columns) noexcept {
    for (std::size_t i = 0; i < 8; i += 4) {
      __m256 r[4];
      for (std::size_t j = 0; j < 4; ++j) {
        const float* at = rows + j * stride + i;
        r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)),
                                    _mm_loadu_ps(at + 4 * stride), 1);
      }
      const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
      const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
      const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
      const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
      float* const to = columns + i * 16;
      _mm256_storeu_ps(to, _mm256_shuffle_ps(low01, low23, 0x44));
      _mm256_storeu_ps(to + 16, _mm256_shuffle_ps(low01, low23, 0xee));
      _mm256_storeu_ps(to + 32, _mm256_shuffle_ps(high01, high23, 0x44));
      _mm256_storeu_ps(to + 48, _mm256_shuffle_ps(high01, high23, 0xee));
    }
  }
  static void transpose16(const float* rows, std::size_t stride, float* columns) noexcept {
    for (std::size_t i = 0; i < 16; i += 8) {
      transpose8(rows + i, stride, columns + i * 16);
      transpose8(rows + 8 * stride + i, stride, columns + i * 16 + 8);
    }
  }

  static Floats add(Floats a, Floats b) noexcept {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  static Floats sub(Floats a, Floats b) noexcept {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  static Floats mul(Floats a, Floats b) noexcept {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  static Floats div(Floats a, Floats b) noexcept {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  static Floats fma(Floats a, Floats b, Floats c) noexcept {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  static Floats min(Floats a, Floats b) noexcept {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  static Floats max(Floats a, Floats b) noexcept {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  static __m256 select_less(__m256 a, __m256 b, __m256 x, __m256 y) noexcept {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
  }
  static Floats select_less(Floats a, Floats b, Floats x, Floats y) noexcept {
    return {select_less(a.lo, b.lo, x.lo, y.lo), select_less(a.hi, b.hi, x.hi, y.hi)};
  }
  static Ints less(Floats a, Floats b) noexcept {
    return {_mm256_castps_si256(_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_castps_si256(_mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
  }
  static Floats lookup8(const float* table, Ints index) noexcept {
    const __m256 all = _mm256_loadu_ps(table);
    return {_mm256_permutevar8x32_ps(all, index.lo), _mm256_permutevar8x32_ps(all, index.hi)};
  }
  static __m256 or_nan(__m256 y, __m256 x) noexcept {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  static Floats or_nan(Floats y, Floats x) noexcept {
    return {or_nan(y.lo, x.lo), or_nan(y.hi, x.hi)};
  }

  static Ints round(Floats x) noexcept {
    return {_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi)};
  }
  static Floats to_float(Ints n) noexcept {
    return {_mm256_cvtepi32_ps(n.lo), _mm256_cvtepi32_ps(n.hi)};
  }
  static __m256 power_of_two(__m256i n) noexcept {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  static Floats power_of_two(Ints n) noexcept { return {power_of_two(n.lo), power_of_two(n.hi)}; }
  static Ints halve(Ints n) noexcept {
    return {_mm256_srai_epi32(n.lo, 1), _mm256_srai_epi32(n.hi, 1)};
  }
  static Ints add_ints(Ints a, Ints b) noexcept {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
  }
  static Ints sub_ints(Ints a, Ints b) noexcept {
    return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
  }
  static Ints abs_bits(Floats x) noexcept {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    return {_mm256_and_si256(_mm256_castps_si256(x.lo), mask),
            _mm256_and_si256(_mm256_castps_si256(x.hi), mask)};
  }
  static Ints max_ints(Ints a, Ints b) noexcept {
    return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
  }

  static float reduce_add(Floats x) noexcept {
    const __m256 eight = _mm256_add_ps(x.lo, x.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // The last two steps of four sums at once: lane j + lane j + 2 of each, then those two.
  static void reduce_add4(const Floats (&x)[4], float* sums) noexcept {
    __m128 four[4];
    for (int i = 0; i < 4; ++i) {
      const __m256 eight = _mm256_add_ps(x[i].lo, x[i].hi);
      four[i] = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    }
    const __m128 low =
        _mm_add_ps(_mm_unpacklo_ps(four[0], four[1]), _mm_unpackhi_ps(four[0], four[1]));
    const __m128 high =
        _mm_add_ps(_mm_unpacklo_ps(four[2], four[3]), _mm_unpackhi_ps(four[2], four[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm_movelh_ps(low, high), _mm_movehl_ps(high, low)));
  }
  static float reduce_max(Floats x) noexcept {
    const __m256 eight = _mm256_max_ps(x.lo, x.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static std::int32_t reduce_add_ints(Ints x) noexcept {
    const __m256i eight = _mm256_add_epi32(x.lo, x.hi);
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  static std::int32_t reduce_max_ints(Ints x) noexcept {
    const __m256i eight = _mm256_max_epi32(x.lo, x.hi);
    const __m128i four =
        _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
};

}  // namespace
}  // namespace lockstep::quant

#endif
