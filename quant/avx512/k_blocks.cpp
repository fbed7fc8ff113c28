// The matmul kernels for AVX-512 VNNI with blocks of 256 columns; g++ needs an option for them (see
// quant/CMakeLists.txt) that costs the others speed.
#include "quant/avx512/kernels.h"
#include "quant/avx512/vector.h"
#include "quant/panels/runs.inl.h"

namespace lockstep::quant::avx512 {

constinit const PanelRuns kKBlockRuns = add_k_block_runs<Vector, OnePanel>({});

}  // namespace lockstep::quant::avx512
