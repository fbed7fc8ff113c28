// The matmul kernels and the peak loops for dotprod.
#include "quant/dotprod/kernels.h"

#include "quant/dotprod/vector.h"
#include "quant/neon/peak.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant::dotprod {

namespace {

struct Peak : NeonPeak {
  static constexpr std::uint64_t kBytes = 16;
  static Ints dot(Ints acc, Ints x) noexcept { return vdotq_s32(acc, bytes(x), bytes(x)); }
};

}  // namespace

constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();
constinit const PanelRuns kPanelRuns = make_panel_runs<DotprodVector>();

}  // namespace lockstep::quant::dotprod
