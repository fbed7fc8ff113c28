// One panel of 8 rows in a register with the dot products of AVX-VNNI, for the kernels of
// quant/vnni/.
#pragma once

#include "quant/vnni/ymm.h"

#if defined(__AVXVNNI__)

namespace lockstep::quant::avxvnni {
namespace {

struct Vector : Ymm {
  // acc + four products of unsigned by signed bytes; acc + two products of int16.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints weights, Ints activations) noexcept {
    return _mm256_dpbusd_avx_epi32(acc, weights, activations);
  }
  LOCKSTEP_INLINE static Ints dot16(Ints acc, Ints a, Ints b) noexcept {
    return _mm256_dpwssd_avx_epi32(acc, a, b);
  }
};

}  // namespace
}  // namespace lockstep::quant::avxvnni

#endif
