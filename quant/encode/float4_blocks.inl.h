// Encoders of MXFP4 and NVFP4: 4-bit floats whose group scales are small floats too. The scales are
// so few that the search tries the codes themselves, each judged as it would be decoded.
#pragma once

#include "quant/encode/blocks.inl.h"

namespace lockstep::quant {
namespace {

// The doubled values of e2m1.h in ascending order; position 7 and 8 are both zero.
inline constexpr std::int8_t kSortedE2m1[16] = {-12, -8, -6, -4, -3, -2, -1, 0,
                                                0,   1,  2,  3,  4,  6,  8,  12};
inline constexpr Codebook kE2m1Book(kSortedE2m1);

struct E2m1Levels : BookLevels<kE2m1Book> {};

inline unsigned e2m1_code(unsigned position) noexcept {
  return position < 7 ? 15u - position : position < 9 ? 0u : position - 8u;
}

inline void put_e2m1(std::byte* to, Codes q, std::size_t half) noexcept {
  for (std::size_t i = 0; i < half; ++i) {
    to[i] = low_byte(e2m1_code(q[i]) | (e2m1_code(q[i + half]) << 4));
  }
}

// Keeps the best of the scale codes center + first ... center + last of each lane; value(code,
// lane) is what a code multiplies the doubled values with. `codes` holds the centers, then the
// choice.
template <class G, class F>
typename G::Floats search_codes(const G& g, int (&codes)[kLanes], int first, int last, int highest,
                                F value) noexcept {
  using S = typename G::S;
  float best_error[kLanes];
  float best[kLanes];
  int choice[kLanes];
  for (int j = 0; j < kLanes; ++j) {
    best_error[j] = kInfinity;
    choice[j] = codes[j] < highest ? codes[j] : highest;
    best[j] = value(choice[j], j);
  }
  for (int off = first; off <= last; ++off) {
    float scale[kLanes];
    int tried[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const int code = codes[j] + off;
      tried[j] = code < 0 ? 0 : code > highest ? highest : code;
      scale[j] = value(tried[j], j);
    }
    float error[kLanes];
    S::store(scale_error<E2m1Levels>(g, S::load(scale)), error);
    for (int j = 0; j < kLanes; ++j) {
      if (!(error[j] < best_error[j])) continue;
      best_error[j] = error[j];
      best[j] = scale[j];
      choice[j] = tried[j];
    }
  }
  for (int j = 0; j < kLanes; ++j) codes[j] = choice[j];
  return S::load(best);
}

// The exponent e of 2^e <= v < 2^(e + 1), for normal v > 0.
inline int exponent_of(float v) noexcept {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return static_cast<int>(bits >> 23) - 127;
}

inline float power_of_two(int n) noexcept {  // -126 <= n <= 127
  const std::uint32_t bits = static_cast<std::uint32_t>(n + 127) << 23;
  float v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}

inline constexpr float kLargestFloat = 3.4028235e38f;

struct EncodeMxfp4 {
  static constexpr int kGroup = mxfp4::kValues;
  static constexpr std::size_t kBytes = mxfp4::kBytes;
  static constexpr float kLargest = kLargestFloat;

  // Scales reach from 2^-127 to 2^127, too far for squares in f32. They are powers of two, so every
  // block is first multiplied by one that brings its largest value to about 1: exact, and undone by
  // the code alone.
  template <class G>
  static void encode(G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    float extreme[kLanes];
    float shrink[kLanes];
    int exponent[kLanes];
    int codes[kLanes];
    S::store(magnitude<S>(extreme_of(g)), extreme);
    for (int j = 0; j < kLanes; ++j) {
      const int e = exponent_of(extreme[j]);
      exponent[j] = e < -126 ? -126 : e > 126 ? 126 : e;
      shrink[j] = power_of_two(-exponent[j]);
      codes[j] = exponent[j] + kBias - 2;  // the largest value between 4 and 8, the last level is 6
    }
    for (int i = 0; i < kGroup; ++i) {
      S::store(S::mul(g.value(i), S::load(shrink)), g.x + i * kLanes);
    }
    const auto scale = search_codes(g, codes, -2, 2, 2 * kBias, [&](int code, int lane) noexcept {
      return power_of_two(code - kBias - 1 - exponent[lane]);
    });
    std::int8_t q[kGroup * kLanes];
    write_codes<E2m1Levels>(g, scale, S::set(0.0f), q);
    for (int b = 0; b < blocks; ++b, out += kBytes) {
      out[mxfp4::kScale] = g.bad[b] ? std::byte{255} : low_byte(static_cast<unsigned>(codes[b]));
      put_e2m1(out + mxfp4::kQuants, Codes{q + b}, kGroup / 2);
    }
  }

  static constexpr int kBias = 127;
};

struct EncodeNvfp4 {
  static constexpr int kGroup = nvfp4::kGroup;
  static constexpr std::size_t kBytes = nvfp4::kBytes;
  // Values beyond 6 times the largest scale, 448, are kept as the largest there is: in this format
  // a scale of the whole tensor is expected to bring values into range.
  static constexpr float kLargest = kLargestFloat;

  // The code of the largest scale up to s.
  static int code_below(float s) noexcept {
    if (s < 0x1p-6f) return static_cast<int>(s * 512.0f);
    std::uint32_t bits;
    __builtin_memcpy(&bits, &s, sizeof bits);
    return (exponent_of(s) + 7) * 8 + static_cast<int>((bits >> 20) & 7u);
  }

  static float half_scale(int code) noexcept {
    const int exponent = code / 8;
    const auto mantissa = static_cast<float>(code % 8);
    if (exponent == 0) return mantissa * 0x1p-10f;
    return (8.0f + mantissa) * power_of_two(exponent - 7 - 1 - 3);
  }

  template <class G>
  static void encode(const G& g, int blocks, std::byte* out) noexcept {
    using S = typename G::S;
    float extreme[kLanes];
    int codes[kLanes];
    S::store(magnitude<S>(extreme_of(g)), extreme);
    for (int j = 0; j < kLanes; ++j) codes[j] = code_below(extreme[j] / 6.0f);
    // From the largest value clipped by a quarter to the largest value at level 4 or even below.
    const auto scale =
        search_codes(g, codes, -4, 7, 126, [](int code, int) noexcept { return half_scale(code); });
    std::int8_t q[kGroup * kLanes];
    write_codes<E2m1Levels>(g, scale, S::set(0.0f), q);
    for (int b = 0; b < blocks; ++b, out += kBytes) {
      for (std::size_t j = 0; j < nvfp4::kGroups; ++j) {
        const std::size_t lane = static_cast<std::size_t>(b) * nvfp4::kGroups + j;
        out[nvfp4::kGroupScales + j] =
            g.bad[b] ? std::byte{127} : low_byte(static_cast<unsigned>(codes[lane]));
        put_e2m1(out + nvfp4::kQuants + j * kGroup / 2, Codes{q + lane}, kGroup / 2);
      }
    }
  }
};

}  // namespace
}  // namespace lockstep::quant
