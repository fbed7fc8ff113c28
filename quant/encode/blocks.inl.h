// The encoders: sixteen groups of a row at a time, searched, then packed as the drawing in the
// format's header shows. Included by the encode.cpp of every instruction set after its simd.h.
//
// How hard each format searches was chosen so that no row of the models at hand loses more than
// with the public tools' bytes, at ten million weights per second and thread or more on AVX2.
#pragma once

#include "quant/encode/affine.inl.h"
#include "quant/encode/encoders.h"
#include "quant/encode/scaled.inl.h"
#include "quant/formats/e2m1.h"
#include "quant/formats/iq4_nl.h"
#include "quant/formats/iq4_xs.h"
#include "quant/formats/mxfp4.h"
#include "quant/formats/nvfp4.h"
#include "quant/formats/q2_k.h"
#include "quant/formats/q3_k.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_1.h"
#include "quant/formats/q4_k.h"
#include "quant/formats/q5_0.h"
#include "quant/formats/q5_1.h"
#include "quant/formats/q5_k.h"
#include "quant/formats/q6_k.h"
#include "quant/formats/q8_0.h"

namespace lockstep::quant {
namespace {

inline void put_word(std::byte* to, std::uint16_t word) noexcept {
  __builtin_memcpy(to, &word, sizeof word);
}

inline std::byte low_byte(unsigned value) noexcept { return static_cast<std::byte>(value & 0xffu); }

// The codes of one group out of the sixteen.
struct Codes {
  const std::int8_t* q;
  unsigned operator[](std::size_t i) const noexcept {
    return static_cast<unsigned>(static_cast<int>(q[i * kLanes]));
  }
};

// Value i in the low nibble of byte i, value i + half in the high one.
inline void put_nibbles(std::byte* to, Codes q, std::size_t half) noexcept {
  for (std::size_t i = 0; i < half; ++i) to[i] = low_byte((q[i] & 15u) | (q[i + half] << 4));
}

// Runs Format::encode over a row, sixteen groups or less at a time.
template <class Format, class S, int kBlockGroups>
void encode_row(const float* values, const float* importance, std::byte* blocks,
                std::size_t n) noexcept {
  constexpr std::size_t kBatch = static_cast<std::size_t>(Format::kGroup) * kLanes;
  constexpr std::size_t kBatchBytes =
      static_cast<std::size_t>(kLanes / kBlockGroups) * Format::kBytes;
  for (; n != 0; values += kBatch, blocks += kBatchBytes) {
    const std::size_t now = n < kBatch ? n : kBatch;
    const int groups = static_cast<int>(now / Format::kGroup);
    if (importance == nullptr) {
      Groups<S, Format::kGroup, false> g;
      g.load(values, nullptr, groups, kBlockGroups, Format::kLargest);
      Format::encode(g, groups / kBlockGroups, blocks);
    } else {
      Groups<S, Format::kGroup, true> g;
      g.load(values, importance, groups, kBlockGroups, Format::kLargest);
      Format::encode(g, groups / kBlockGroups, blocks);
      importance += kBatch;
    }
    n -= now;
  }
}

inline constexpr float kBad = __builtin_nanf("");

// d and the multiples of it, ready to be stored: d is 0 where all groups are.
template <class S>
void finish_scales(const bool* bad, int block_groups, const float* scale, float* d,
                   std::uint16_t* half) noexcept {
  for (int first = 0; first < kLanes; first += block_groups) {
    bool all_zero = true;
    for (int j = first; j < first + block_groups; ++j) all_zero = all_zero && scale[j] == 0.0f;
    for (int j = first; j < first + block_groups; ++j) {
      if (all_zero && d[j] == d[j]) d[j] = 0.0f;
      if (bad[first / block_groups]) d[j] = kBad;
    }
  }
  S::store_f16(S::load(d), half);
}

// ---- d * sc * q ----

struct EncodeQ3K {
  static constexpr int kGroup = q3_k::kGroup;
  static constexpr int kBlockGroups = q3_k::kGroups;
  static constexpr std::size_t kBytes = q3_k::kBytes;
  static constexpr float kLargest = quant::kLargest;
  using Levels = Uniform<-4, 3>;
  using Scales = Uniform<-32, 31>;
  static constexpr ScaledEffort kEffort{{0.7f, 0.05f, 14}, {-0.9f, 0.1f, 19}, 4, 2, 2, 3, true};

  static void pack(const std::int8_t* q, const float* scale, std::uint16_t d,
                   std::byte* block) noexcept {
    __builtin_memset(block, 0, kBytes);
    for (std::size_t j = 0; j < q3_k::kGroups; ++j) {
      const auto code = static_cast<unsigned>(static_cast<int>(scale[j]) + 32);
      std::byte* s = block + q3_k::kGroupScales;
      s[j % 8] |= low_byte((code & 15u) << (4 * (j / 8)));
      s[8 + j % 4] |= low_byte((code >> 4) << (2 * (j / 4)));
      const Codes group{q + j};
      const std::size_t half = j / 8;
      const std::size_t quarter = j % 8 / 2;
      for (std::size_t i = 0; i < q3_k::kGroup; ++i) {
        const unsigned level = group[i] + 4u;
        const std::size_t l = j % 2 * q3_k::kGroup + i;
        block[q3_k::kLow + 32 * half + l] |= low_byte((level & 3u) << (2 * quarter));
        block[q3_k::kThirdBits + l] |= low_byte((level >> 2) << (4 * half + quarter));
      }
    }
    put_word(block + q3_k::kScale, d);
  }
};

struct EncodeQ6K {
  static constexpr int kGroup = q6_k::kGroup;
  static constexpr int kBlockGroups = q6_k::kGroups;
  static constexpr std::size_t kBytes = q6_k::kBytes;
  static constexpr float kLargest = quant::kLargest;
  using Levels = Uniform<-32, 31>;
  using Scales = Uniform<-128, 127>;
  static constexpr ScaledEffort kEffort{{0.92f, 0.02f, 8}, {-0.9f, 0.1f, 19}, 6, 3, 3, 6, false};

  static void pack(const std::int8_t* q, const float* scale, std::uint16_t d,
                   std::byte* block) noexcept {
    __builtin_memset(block, 0, kBytes);
    for (std::size_t j = 0; j < q6_k::kGroups; ++j) {
      block[q6_k::kGroupScales + j] = low_byte(static_cast<unsigned>(static_cast<int>(scale[j])));
      const Codes group{q + j};
      const std::size_t half = j / 8;
      const std::size_t quarter = j % 8 / 2;
      std::byte* low = block + q6_k::kLow + 64 * half + 32 * (quarter % 2) + j % 2 * 16;
      std::byte* high = block + q6_k::kHigh + 32 * half + j % 2 * 16;
      for (std::size_t i = 0; i < q6_k::kGroup; ++i) {
        const unsigned level = group[i] + 32u;
        low[i] |= low_byte((level & 15u) << (4 * (quarter / 2)));
        high[i] |= low_byte((level >> 4) << (2 * quarter));
      }
    }
    put_word(block + q6_k::kScale, d);
  }
};

inline constexpr Codebook kIq4Book(iq4_nl::kLevels);

struct EncodeIq4Xs {
  static constexpr int kGroup = iq4_xs::kGroup;
  static constexpr int kBlockGroups = iq4_xs::kGroups;
  static constexpr std::size_t kBytes = iq4_xs::kBytes;
  static constexpr float kLargest = quant::kLargest;
  using Levels = BookLevels<kIq4Book>;
  using Scales = Uniform<-32, 31>;
  static constexpr ScaledEffort kEffort{{0.7f, 0.03f, 18}, {-7.0f, 1.0f, 15}, 5, 2, 3, 4, true};

  static void pack(const std::int8_t* q, const float* scale, std::uint16_t d,
                   std::byte* block) noexcept {
    unsigned high = 0;
    __builtin_memset(block, 0, iq4_xs::kQuants);
    for (std::size_t j = 0; j < iq4_xs::kGroups; ++j) {
      const auto code = static_cast<unsigned>(static_cast<int>(scale[j]) + 32);
      high |= (code >> 4) << (2 * j);
      block[iq4_xs::kScalesLow + j / 2] |= low_byte((code & 15u) << (4 * (j % 2)));
      put_nibbles(block + iq4_xs::kQuants + j * kGroup / 2, Codes{q + j}, kGroup / 2);
    }
    put_word(block + iq4_xs::kScalesHigh, static_cast<std::uint16_t>(high));
    put_word(block + iq4_xs::kScale, d);
  }
};

template <class Format>
struct EncodeScaledBlocks : Format {
  template <class G>
  static void encode(const G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    using Levels = typename Format::Levels;
    constexpr int kBlockGroups = Format::kBlockGroups;
    ScaledLanes lanes =
        search_scaled_blocks<Levels, typename Format::Scales>(g, kBlockGroups, Format::kEffort);
    std::int8_t q[Format::kGroup * kLanes];
    write_codes<Levels>(g, S::mul(S::load(lanes.d), S::load(lanes.scale)), S::set(0.0f), q);
    std::uint16_t half[kLanes];
    finish_scales<S>(g.bad, kBlockGroups, lanes.scale, lanes.d, half);
    for (int b = 0; b < blocks; ++b, out += Format::kBytes) {
      const int first = b * kBlockGroups;
      Format::pack(q + first, lanes.scale + first, half[first], out);
    }
  }
};

// ---- d * sc * q - dmin * m ----

struct EncodeQ2K {
  static constexpr int kGroup = q2_k::kGroup;
  static constexpr std::size_t kBytes = q2_k::kBytes;
  static constexpr float kLargest = quant::kLargest;
  static constexpr int kBlockGroups = q2_k::kGroups;
  static constexpr int kHighest = 3;
  using Integers = Uniform<0, 15>;
  static constexpr AffineEffort kEffort{{-0.3f, 0.3f, 4}, 2, {-0.5f, 0.1f, 16}, 3, 2, 3, 0};

  static void pack(const std::int8_t* q, const float* scale, const float* min, std::uint16_t d,
                   std::uint16_t dmin, std::byte* block) noexcept {
    __builtin_memset(block, 0, kBytes);
    for (std::size_t j = 0; j < q2_k::kGroups; ++j) {
      block[q2_k::kGroupScales + j] =
          low_byte(static_cast<unsigned>(scale[j]) | (static_cast<unsigned>(min[j]) << 4));
      const Codes group{q + j};
      std::byte* four = block + q2_k::kQuants + 32 * (j / 8) + j % 2 * q2_k::kGroup;
      for (std::size_t i = 0; i < q2_k::kGroup; ++i) {
        four[i] |= low_byte(group[i] << (2 * (j % 8 / 2)));
      }
    }
    put_word(block + q2_k::kScale, d);
    put_word(block + q2_k::kMin, dmin);
  }
};

// The 12 bytes of 6-bit scales and minima that Q4_K and Q5_K share.
inline void put_group_scales(std::byte* s, const float* scale, const float* min) noexcept {
  __builtin_memset(s, 0, 12);
  for (std::size_t j = 0; j < 8; ++j) {
    const auto sc = static_cast<unsigned>(scale[j]);
    const auto m = static_cast<unsigned>(min[j]);
    if (j < 4) {
      s[j] |= low_byte(sc);
      s[j + 4] |= low_byte(m);
    } else {
      s[j + 4] = low_byte((sc & 15u) | ((m & 15u) << 4));
      s[j - 4] |= low_byte((sc >> 4) << 6);
      s[j] |= low_byte((m >> 4) << 6);
    }
  }
}

struct EncodeQ4K {
  static constexpr int kGroup = q4_k::kGroup;
  static constexpr std::size_t kBytes = q4_k::kBytes;
  static constexpr float kLargest = quant::kLargest;
  static constexpr int kBlockGroups = q4_k::kGroups;
  static constexpr int kHighest = 15;
  using Integers = Uniform<0, 63>;
  static constexpr AffineEffort kEffort{{-0.75f, 0.3f, 6}, 2, {-1.0f, 0.1f, 21}, 4, 2, 3, 5};

  static void pack(const std::int8_t* q, const float* scale, const float* min, std::uint16_t d,
                   std::uint16_t dmin, std::byte* block) noexcept {
    put_group_scales(block + q4_k::kGroupScales, scale, min);
    for (std::size_t j = 0; j < q4_k::kGroups; j += 2) {
      const Codes even{q + j};
      const Codes odd{q + j + 1};
      std::byte* pairs = block + q4_k::kQuants + j / 2 * kGroup;
      for (std::size_t i = 0; i < kGroup; ++i) pairs[i] = low_byte(even[i] | (odd[i] << 4));
    }
    put_word(block + q4_k::kScale, d);
    put_word(block + q4_k::kMin, dmin);
  }
};

struct EncodeQ5K {
  static constexpr int kGroup = q5_k::kGroup;
  static constexpr std::size_t kBytes = q5_k::kBytes;
  static constexpr float kLargest = quant::kLargest;
  static constexpr int kBlockGroups = q5_k::kGroups;
  static constexpr int kHighest = 31;
  using Integers = Uniform<0, 63>;
  static constexpr AffineEffort kEffort{{-0.6f, 0.4f, 5}, 2, {-0.5f, 0.1f, 16}, 3, 2, 3, 5};

  static void pack(const std::int8_t* q, const float* scale, const float* min, std::uint16_t d,
                   std::uint16_t dmin, std::byte* block) noexcept {
    put_group_scales(block + q4_k::kGroupScales, scale, min);
    __builtin_memset(block + q5_k::kFifthBits, 0, kGroup);
    for (std::size_t j = 0; j < q5_k::kGroups; j += 2) {
      const Codes even{q + j};
      const Codes odd{q + j + 1};
      std::byte* pairs = block + q5_k::kQuants + j / 2 * kGroup;
      for (std::size_t i = 0; i < kGroup; ++i) {
        pairs[i] = low_byte((even[i] & 15u) | ((odd[i] & 15u) << 4));
        block[q5_k::kFifthBits + i] |= low_byte(((even[i] >> 4) << j) | ((odd[i] >> 4) << (j + 1)));
      }
    }
    put_word(block + q5_k::kScale, d);
    put_word(block + q5_k::kMin, dmin);
  }
};

template <class Format>
struct EncodeAffine : Format {
  template <class G>
  static void encode(const G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    constexpr int kBlockGroups = Format::kBlockGroups;
    using Integers = typename Format::Integers;
    AffineLanes lanes =
        search_affine_blocks<Format::kHighest, Integers>(g, kBlockGroups, Format::kEffort);
    std::int8_t q[Format::kGroup * kLanes];
    write_codes<Uniform<0, Format::kHighest>>(g, S::mul(S::load(lanes.d), S::load(lanes.scale)),
                                              S::mul(S::load(lanes.dmin), S::load(lanes.min)), q);
    std::uint16_t d[kLanes];
    std::uint16_t dmin[kLanes];
    finish_scales<S>(g.bad, kBlockGroups, lanes.scale, lanes.d, d);
    finish_scales<S>(g.bad, kBlockGroups, lanes.min, lanes.dmin, dmin);
    for (int b = 0; b < blocks; ++b, out += Format::kBytes) {
      const int first = b * kBlockGroups;
      Format::pack(q + first, lanes.scale + first, lanes.min + first, d[first], dmin[first], out);
    }
  }
};

}  // namespace
}  // namespace lockstep::quant
