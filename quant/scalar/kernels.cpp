// The row kernels and the peak loops in plain C++: correct on every processor, and what the vector
// ones are tested against.
#include "quant/scalar/kernels.h"

#include "quant/scalar/simd.h"

#include "quant/peaks.inl.h"
#include "quant/row_kernels.inl.h"

namespace lockstep::quant::scalar {

namespace {

struct Peak {
  using Ints = std::int32_t;
  using Floats = float;
  static constexpr std::uint64_t kBytes = 1;
  static constexpr std::uint64_t kFloats = 1;
  static Ints ints() noexcept { return 3; }
  static Floats floats() noexcept { return 0.5f; }
  static Ints dot(Ints acc, Ints x) noexcept { return acc + x * x; }
  static Floats fma(Floats acc, Floats x) noexcept { return __builtin_fmaf(acc, x, x); }
  static void keep(Ints& x) noexcept { asm volatile("" : "+r"(x)); }
  static void keep(Floats& x) noexcept { asm volatile("" : "+m"(x)); }
};

}  // namespace

constinit const RowKernels kRowKernels = make_row_kernels<ScalarSimd>();
constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();

}  // namespace lockstep::quant::scalar
