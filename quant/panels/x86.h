// What the vector classes of x86 for quant/panels/ have in common: all that follows from the
// operations of the class V itself, whatever the width of its integers.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>

#include "quant/panels/panel.inl.h"

namespace lockstep::quant {
namespace {

// (Not over the type of the integers too: g++ warns of a vector type as a template argument.)
template <class V>
struct X86Vector {
  static constexpr bool kSigned = false;  // vpdpbusd takes unsigned weights

  LOCKSTEP_INLINE static void prefetch(const std::byte* at) noexcept {
    _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
  }
  LOCKSTEP_INLINE static auto broadcast128(const std::byte* at) noexcept {
    return V::repeat128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  // The top bits of 8 bytes.
  LOCKSTEP_INLINE static unsigned top_bits(const std::byte* at) noexcept {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return static_cast<unsigned>(_mm_movemask_epi8(bytes)) & 0xffu;
  }

  // Bits [kShift, kShift + kWidth) of every byte.
  template <int kShift, int kWidth>
  LOCKSTEP_INLINE static auto bits(auto x) noexcept {
    const auto mask = V::set8((1 << kWidth) - 1);
    if constexpr (kShift == 0) return V::bit_and(x, mask);
    return V::bit_and(V::template shift_right16<kShift>(x), mask);
  }
  // `x`, which has zeros under the mask, with those bits of `from`.
  LOCKSTEP_INLINE static auto insert(auto x, auto from, auto mask) noexcept {
    return V::bit_or(x, V::bit_and(from, mask));
  }
  // acc + the products of step kStep of those whose activations begin at `at`.
  template <int kStep>
  LOCKSTEP_INLINE static auto dot_at(auto acc, auto weights, const std::byte* at) noexcept {
    return V::dot(acc, weights, V::broadcast32(at + 4 * kStep));
  }
  // Two sums of activations in every lane, and two factors of 16 bits for them.
  LOCKSTEP_INLINE static auto load_sums(const std::byte* at) noexcept { return V::broadcast32(at); }
  LOCKSTEP_INLINE static auto pair(auto first, auto second) noexcept {
    return V::bit_or(V::bit_and(first, V::set32(0xffff)), V::template shift_left32<16>(second));
  }
  LOCKSTEP_INLINE static auto both(auto factor) noexcept { return pair(factor, factor); }
};

}  // namespace
}  // namespace lockstep::quant

#endif
