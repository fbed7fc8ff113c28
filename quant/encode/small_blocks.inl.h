// Encoders of the formats whose blocks are single groups: one lane, one block.
#pragma once

#include "quant/encode/blocks.inl.h"

namespace lockstep::quant {
namespace {

// As five_bits::encode, which no instruction set may instantiate.
inline void put_five_bits(std::byte* to, Codes q) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) bits |= ((q[i] >> 4) & 1u) << i;
  __builtin_memcpy(to, &bits, sizeof bits);
  put_nibbles(to + five_bits::kNibbles, q, 16);
}

struct PackIq4Nl {
  static constexpr std::size_t kBytes = iq4_nl::kBytes;
  using Levels = BookLevels<kIq4Book>;
  static constexpr Grid kGrid{0.7f, 0.03f, 18};
  static void pack(Codes q, std::byte* block) noexcept {
    put_nibbles(block + iq4_nl::kQuants, q, 16);
  }
};

template <int kOffset>
struct OffsetLevels : Uniform<-kOffset, kOffset - 1> {
  template <class S>
  static typename S::Ints code(typename S::Floats v) noexcept {
    const auto level = Uniform<-kOffset, kOffset - 1>::template nearest<S>(v);
    return S::round(S::add(level, S::set(static_cast<float>(kOffset))));
  }
};

struct PackQ4_0 {
  static constexpr std::size_t kBytes = q4_0::kBytes;
  using Levels = OffsetLevels<8>;
  static constexpr Grid kGrid{0.75f, 0.03f, 18};
  static void pack(Codes q, std::byte* block) noexcept {
    put_nibbles(block + q4_0::kQuants, q, 16);
  }
};

struct PackQ5_0 {
  static constexpr std::size_t kBytes = q5_0::kBytes;
  using Levels = OffsetLevels<16>;
  static constexpr Grid kGrid{0.85f, 0.015f, 18};
  static void pack(Codes q, std::byte* block) noexcept { put_five_bits(block + q5_0::kQuants, q); }
};

struct PackQ8_0 {
  static constexpr std::size_t kBytes = q8_0::kBytes;
  using Levels = Uniform<-127, 127>;
  static constexpr Grid kGrid{0.985f, 0.002f, 12};
  static void pack(Codes q, std::byte* block) noexcept {
    for (std::size_t i = 0; i < 32; ++i) block[q8_0::kQuants + i] = low_byte(q[i]);
  }
};

// One f16 scale per block.
template <class Format>
struct EncodeScaled : Format {
  static constexpr int kGroup = 32;
  static constexpr float kLargest = 65504.0f * -Format::Levels::kLow;

  static constexpr Grid kUsual{-7.0f, 1.0f, 15};

  template <class G>
  static void encode(const G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    const auto d = search_own_scale<typename Format::Levels>(g, Format::kGrid, kUsual, 2);
    std::int8_t q[kGroup * kLanes];
    write_codes<typename Format::Levels>(g, d, S::set(0.0f), q);
    float lanes[kLanes];
    S::store(d, lanes);
    std::uint16_t half[kLanes];
    for (int b = 0; b < kLanes; ++b) lanes[b] = g.bad[b] ? kBad : lanes[b];
    S::store_f16(S::load(lanes), half);
    for (int b = 0; b < blocks; ++b, out += Format::kBytes) {
      put_word(out, half[b]);
      Format::pack(Codes{q + b}, out);
    }
  }
};

struct PackQ4_1 {
  static constexpr std::size_t kBytes = q4_1::kBytes;
  static constexpr int kHighest = 15;
  static void pack(Codes q, std::byte* block) noexcept {
    put_nibbles(block + q4_1::kQuants, q, 16);
  }
};

struct PackQ5_1 {
  static constexpr std::size_t kBytes = q5_1::kBytes;
  static constexpr int kHighest = 31;
  static void pack(Codes q, std::byte* block) noexcept { put_five_bits(block + q5_1::kQuants, q); }
};

// One f16 scale and one f16 minimum (added, not subtracted) per block.
template <class Format>
struct EncodeScaledAndMin : Format {
  static constexpr int kGroup = 32;
  static constexpr float kLargest = 65504.0f;  // what the minimum may have to hold

  template <class G>
  static void encode(const G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    constexpr Insets kInsets{-0.3f, 0.3f, 5};
    const auto fit = search_affine<Format::kHighest, true>(g, kInsets, 2);
    std::int8_t q[kGroup * kLanes];
    write_codes<Uniform<0, Format::kHighest>>(g, fit.scale, fit.min, q);
    float d[kLanes];
    float m[kLanes];
    S::store(fit.scale, d);
    S::store(S::sub(S::set(0.0f), fit.min), m);
    for (int b = 0; b < kLanes; ++b) {
      if (g.bad[b]) d[b] = m[b] = kBad;
    }
    std::uint16_t half_d[kLanes];
    std::uint16_t half_m[kLanes];
    S::store_f16(S::load(d), half_d);
    S::store_f16(S::load(m), half_m);
    for (int b = 0; b < blocks; ++b, out += Format::kBytes) {
      put_word(out, half_d[b]);
      put_word(out + 2, half_m[b]);
      Format::pack(Codes{q + b}, out);
    }
  }
};
static_assert(q4_1::kMin == 2 && q5_1::kMin == 2 && q4_1::kScale == 0 && q5_1::kScale == 0);
static_assert(iq4_nl::kScale == 0 && q4_0::kScale == 0 && q5_0::kScale == 0 && q8_0::kScale == 0);

}  // namespace
}  // namespace lockstep::quant
