// The matmul kernels for dotprod.
#include "quant/dotprod/kernels.h"

#include "quant/dotprod/vector.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant::dotprod {

constinit const PanelRuns kPanelRuns = make_panel_runs<DotprodVector>();

}  // namespace lockstep::quant::dotprod
