// The row kernels and the peak loops for NEON: row_kernels.inl.h over four 128-bit registers.
#include "quant/neon/kernels.h"

#include "quant/neon/peak.h"
#include "quant/neon/simd.h"

#include "quant/row_kernels.inl.h"

namespace lockstep::quant::neon {

namespace {

struct Peak : NeonPeak {
  static constexpr std::uint64_t kBytes = 16;
  static Ints dot(Ints acc, Ints x) noexcept {
    int16x8_t pairs = vmull_s8(vget_low_s8(bytes(x)), vget_low_s8(bytes(x)));
    asm volatile("" : "+w"(pairs));  // else it would leave the loop
    return vpadalq_s16(acc, vmlal_high_s8(pairs, bytes(x), bytes(x)));
  }
};

}  // namespace

constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();
constinit const RowKernels kRowKernels = make_row_kernels<NeonSimd>();

}  // namespace lockstep::quant::neon
