// The formats with blocks of 32 and 64 columns on AVX-VNNI.
#include "quant/avxvnni/kernels.h"
#include "quant/avxvnni/vector.h"
#include "quant/panels/blocks.inl.h"

namespace lockstep::quant::avxvnni {

void run_q4_0(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ4_0<Vector>>(call, Format::q8_0);
}
void run_q4_1(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ4_1<Vector>>(call, Format::q8_0);
}
void run_q5_0(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ5_0<Vector>>(call, Format::q8_0);
}
void run_q5_1(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ5_1<Vector>>(call, Format::q8_0);
}
void run_q8_0(const MatmulCall& call) noexcept {
  run_panels<Vector, TileQ8_0<Vector>>(call, Format::q8_0);
}
void run_iq4_nl(const MatmulCall& call) noexcept {
  run_panels<Vector, TileIQ4_NL<Vector>>(call, Format::q8_0);
}
void run_mxfp4(const MatmulCall& call) noexcept {
  run_panels<Vector, TileMXFP4<Vector>>(call, Format::q8_0);
}
void run_nvfp4(const MatmulCall& call) noexcept {
  run_panels<Vector, TileNVFP4<Vector>>(call, Format::q8_0);
}

}  // namespace lockstep::quant::avxvnni
