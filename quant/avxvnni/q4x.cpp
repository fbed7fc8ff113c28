// Q4X on AVX-VNNI.
#include "quant/avxvnni/kernels.h"
#include "quant/avxvnni/vector.h"
#include "quant/panels/q4x.inl.h"

namespace lockstep::quant::avxvnni {

void run_q4x(const MatmulCall& call) noexcept {
  run_panels<Vector>(call, Format::q8_0, TileQ4X<Vector>(call.side));
}

}  // namespace lockstep::quant::avxvnni
