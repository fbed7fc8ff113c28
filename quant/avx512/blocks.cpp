// The matmul kernels for AVX-512 VNNI but those with blocks of 256 columns.
#include "quant/avx512/kernels.h"
#include "quant/avx512/vector.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant::avx512 {

constinit const PanelRuns kBlockRuns = make_block_runs<Vector, OnePanel>();

}  // namespace lockstep::quant::avx512
