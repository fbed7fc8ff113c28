// The matmul kernels for NEON alone: bytes are multiplied to 16 bits, where the products of two
// steps are added before they are widened.
#include "quant/neon/kernels.h"
#include "quant/neon/vector.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant {
namespace {

struct NeonVector : NeonPair {
  // Two registers per token hold half sums, so that more tokens would not fit.
  static constexpr std::size_t kTileTokens = 2;

  // acc + four products of signed bytes in every lane.
  LOCKSTEP_INLINE static Ints dot(Ints acc, Ints weights, Ints activations) noexcept {
    const auto half = [](uint8x16_t sum, uint8x16_t x, uint8x16_t y) noexcept {
      const int16x8_t low = vmull_s8(vget_low_s8(s8(x)), vget_low_s8(s8(y)));
      const int16x8_t high = vmull_high_s8(s8(x), s8(y));
      return bytes(vpadalq_s16(s32(sum), vpaddq_s16(low, high)));
    };
    return {half(acc.a, weights.a, activations.a), half(acc.b, weights.b, activations.b)};
  }
};

// Two lanes per row, each the sum of every other pair of columns. Two products of 128 by 127 fit 16
// bits, four do not.
template <int N>
class Products<NeonVector, N> {
 public:
  using Ints = NeonPair::Ints;

  LOCKSTEP_INLINE explicit Products(const Ints (&start)[N]) noexcept {
    const int32x4_t zero = vdupq_n_s32(0);
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) {
      const int32x4_t a = NeonPair::s32(start[t].a);
      const int32x4_t b = NeonPair::s32(start[t].b);
      sum_[t][0] = vzip1q_s32(a, zero);
      sum_[t][1] = vzip2q_s32(a, zero);
      sum_[t][2] = vzip1q_s32(b, zero);
      sum_[t][3] = vzip2q_s32(b, zero);
    }
  }
  LOCKSTEP_INLINE void add(Ints first, Ints second, const Tokens<NeonVector, N>& tokens,
                           std::size_t column) noexcept {
    const int8x16_t w[4] = {NeonPair::s8(first.a), NeonPair::s8(first.b), NeonPair::s8(second.a),
                            NeonPair::s8(second.b)};
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) {
      const int8x16_t y0 = four(tokens.at(t, column));
      const int8x16_t y1 = four(tokens.at(t, column + 4));
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(w[i]), vget_low_s8(y0)),
                                       vget_low_s8(w[i + 2]), vget_low_s8(y1));
        const int16x8_t high = vmlal_high_s8(vmull_high_s8(w[i], y0), w[i + 2], y1);
        sum_[t][2 * i] = vpadalq_s16(sum_[t][2 * i], low);
        sum_[t][2 * i + 1] = vpadalq_s16(sum_[t][2 * i + 1], high);
      }
    }
  }
  LOCKSTEP_INLINE void store(Ints (&isum)[N]) const noexcept {
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) {
      isum[t] = {NeonPair::bytes(vpaddq_s32(sum_[t][0], sum_[t][1])),
                 NeonPair::bytes(vpaddq_s32(sum_[t][2], sum_[t][3]))};
    }
  }

 private:
  LOCKSTEP_INLINE static int8x16_t four(const std::byte* at) noexcept {
    return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const std::int32_t*>(at)));
  }

  int32x4_t sum_[N][4];
};

}  // namespace

namespace neon {

constinit const PanelRuns kPanelRuns = make_panel_runs<NeonVector>();

}  // namespace neon
}  // namespace lockstep::quant
