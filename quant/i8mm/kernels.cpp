// The matmul kernels and the peak loops for i8mm: smmla multiplies 2 rows x 8 columns by 8 columns
// x 2 tokens. An odd token, or a single one, is left to sdot, which does not waste half of the
// products.
#include "quant/i8mm/kernels.h"

#include "quant/dotprod/vector.h"
#include "quant/neon/peak.h"
#include "quant/panels/runs.inl.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)

namespace lockstep::quant {
namespace {

// A product here costs more to prepare for, so more tokens share it.
struct I8mmVector : DotprodVector {
  static constexpr std::size_t kTileTokens = 8;
};

// Lanes of a sum: row 2i of tokens t and t + 1, row 2i + 1 of both.
template <int N>
requires(N % 2 == 0) class Products<I8mmVector, N> {
 public:
  using Ints = NeonPair::Ints;

  LOCKSTEP_INLINE explicit Products(const Ints (&start)[N]) noexcept {
#pragma GCC unroll 4
    for (int t = 0; t < N; t += 2) {
      const Ints low = NeonPair::unpack_low32(start[t], start[t + 1]);
      const Ints high = NeonPair::unpack_high32(start[t], start[t + 1]);
      sum_[t / 2][0] = NeonPair::s32(low.a);
      sum_[t / 2][1] = NeonPair::s32(high.a);
      sum_[t / 2][2] = NeonPair::s32(low.b);
      sum_[t / 2][3] = NeonPair::s32(high.b);
    }
  }
  LOCKSTEP_INLINE void add(Ints first, Ints second, const Tokens<I8mmVector, N>& tokens,
                           std::size_t column) noexcept {
    const Ints low = NeonPair::unpack_low32(first, second);
    const Ints high = NeonPair::unpack_high32(first, second);
    const int8x16_t rows[4] = {NeonPair::s8(low.a), NeonPair::s8(high.a), NeonPair::s8(low.b),
                               NeonPair::s8(high.b)};
#pragma GCC unroll 4
    for (int t = 0; t < N; t += 2) {
      const int8x16_t two =
          vcombine_s8(eight(tokens.at(t, column)), eight(tokens.at(t + 1, column)));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum_[t / 2][i] = vmmlaq_s32(sum_[t / 2][i], rows[i], two);
    }
  }
  LOCKSTEP_INLINE void store(Ints (&isum)[N]) const noexcept {
#pragma GCC unroll 4
    for (int t = 0; t < N; t += 2) {
      const auto& sum = sum_[t / 2];
      isum[t] = {NeonPair::bytes(vuzp1q_s32(sum[0], sum[1])),
                 NeonPair::bytes(vuzp1q_s32(sum[2], sum[3]))};
      isum[t + 1] = {NeonPair::bytes(vuzp2q_s32(sum[0], sum[1])),
                     NeonPair::bytes(vuzp2q_s32(sum[2], sum[3]))};
    }
  }

 private:
  LOCKSTEP_INLINE static int8x8_t eight(const std::byte* at) noexcept {
    return vld1_s8(reinterpret_cast<const std::int8_t*>(at));
  }

  int32x4_t sum_[N / 2][4];
};

}  // namespace

namespace i8mm {
namespace {

struct Peak : NeonPeak {
  static constexpr std::uint64_t kBytes = 32;
  static Ints dot(Ints acc, Ints x) noexcept { return vmmlaq_s32(acc, bytes(x), bytes(x)); }
};

}  // namespace

constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();
constinit const PanelRuns kPanelRuns = make_panel_runs<I8mmVector>();

}  // namespace i8mm
}  // namespace lockstep::quant

#endif
