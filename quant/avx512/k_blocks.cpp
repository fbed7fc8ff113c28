// The formats with blocks of 256 columns on AVX-512 VNNI.
#include "quant/avx512/kernels.h"
#include "quant/avx512/vector.h"
#include "quant/panels/k_blocks.inl.h"

namespace lockstep::quant::avx512 {

void run_q2_k(const MatmulCall& call) noexcept { run<TileQ2_K>(call, Format::q8_0); }
void run_q3_k(const MatmulCall& call) noexcept { run<TileQ3_K>(call, Format::q8_k); }
void run_q4_k(const MatmulCall& call) noexcept { run<TileQ4_K>(call, Format::q8_k); }
void run_q5_k(const MatmulCall& call) noexcept { run<TileQ5_K>(call, Format::q8_0); }
void run_q6_k(const MatmulCall& call) noexcept { run<TileQ6_K>(call, Format::q8_0); }
void run_iq4_xs(const MatmulCall& call) noexcept { run<TileIQ4_XS>(call, Format::q8_k); }

}  // namespace lockstep::quant::avx512
