// The matmul kernels and the peak loops for AVX-VNNI.
#include "quant/avxvnni/kernels.h"

#include "quant/avx2/peak.h"
#include "quant/avxvnni/vector.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant::avxvnni {
namespace {

struct Peak : YmmPeak {
  static Ints dot(Ints acc, Ints x) noexcept { return _mm256_dpbusd_avx_epi32(acc, x, x); }
};

}  // namespace

constinit const PeakLoops kPeakLoops = make_peak_loops<Peak>();
constinit const PanelRuns kPanelRuns = make_panel_runs<Vector>();

}  // namespace lockstep::quant::avxvnni
