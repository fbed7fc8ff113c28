// The formats with blocks of 256 columns on AVX-VNNI.
#include "quant/avxvnni/kernels.h"
#include "quant/avxvnni/vector.h"
#include "quant/panels/k_blocks.inl.h"

namespace lockstep::quant::avxvnni {

void run_q2_k(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ2_K<Vector>>(call, Format::q8_0);
}
void run_q3_k(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ3_K<Vector>>(call, Format::q8_k);
}
void run_q4_k(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ4_K<Vector>>(call, Format::q8_k);
}
void run_q5_k(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ5_K<Vector>>(call, Format::q8_0);
}
void run_q6_k(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ6_K<Vector>>(call, Format::q8_0);
}
void run_iq4_xs(const MatmulCall& call) noexcept {
  run_panels<Vector, TileIQ4_XS<Vector>>(call, Format::q8_k);
}

}  // namespace lockstep::quant::avxvnni
