// One panel of 8 rows in a register with the dot products of AVX-VNNI, for the kernels of
// quant/panels/.
#pragma once

#include "quant/panels/ymm.h"

#if defined(__AVXVNNI__)

namespace lockstep::quant::avxvnni {
namespace {

struct Dots {
  LOCKSTEP_INLINE static __m256i bytes(__m256i acc, __m256i u, __m256i s) noexcept {
    return _mm256_dpbusd_avx_epi32(acc, u, s);
  }
  LOCKSTEP_INLINE static __m256i shorts(__m256i acc, __m256i a, __m256i b) noexcept {
    return _mm256_dpwssd_avx_epi32(acc, a, b);
  }
};

using Vector = Ymm<Dots>;

}  // namespace
}  // namespace lockstep::quant::avxvnni

#endif
