// The formats with blocks of 32 and 64 columns on AVX-512 VNNI.
#include "quant/avx512/kernels.h"
#include "quant/avx512/vector.h"
#include "quant/panels/blocks.inl.h"

namespace lockstep::quant::avx512 {

void run_q4_0(const MatmulCall& call) noexcept { run<TileQ4_0>(call, Format::q8_0); }
void run_q4_1(const MatmulCall& call) noexcept { run<TileQ4_1>(call, Format::q8_0); }
void run_q5_0(const MatmulCall& call) noexcept { run<TileQ5_0>(call, Format::q8_0); }
void run_q5_1(const MatmulCall& call) noexcept { run<TileQ5_1>(call, Format::q8_0); }
void run_q8_0(const MatmulCall& call) noexcept { run<TileQ8_0>(call, Format::q8_0); }
void run_iq4_nl(const MatmulCall& call) noexcept { run<TileIQ4_NL>(call, Format::q8_0); }
void run_mxfp4(const MatmulCall& call) noexcept { run<TileMXFP4>(call, Format::q8_0); }
void run_nvfp4(const MatmulCall& call) noexcept { run<TileNVFP4>(call, Format::q8_0); }

}  // namespace lockstep::quant::avx512
