// Q4X on AVX-512 VNNI.
#include "quant/avx512/kernels.h"
#include "quant/avx512/vector.h"
#include "quant/panels/q4x.inl.h"

namespace lockstep::quant::avx512 {

void run_q4x(const MatmulCall& call) noexcept { run<TileQ4X>(call, Format::q8_0, call.side); }

}  // namespace lockstep::quant::avx512
