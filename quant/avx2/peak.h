// What the peak loops with 256-bit registers share: all but the product of bytes.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "quant/peaks.inl.h"

namespace lockstep::quant {
namespace {

struct YmmPeak {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr std::uint64_t kBytes = 32;
  static constexpr std::uint64_t kFloats = 8;
  static Ints ints() noexcept { return _mm256_set1_epi8(1); }
  static Floats floats() noexcept { return _mm256_set1_ps(0.5f); }
  static Floats fma(Floats acc, Floats x) noexcept { return _mm256_fmadd_ps(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+x"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+x"(x)); }
};

}  // namespace
}  // namespace lockstep::quant

#endif
