// All kernels on panels of one instruction set, made from the class V of its vector.h.
#pragma once

#include "quant/panels/k_blocks.inl.h"
#include "quant/panels/q4x.inl.h"

namespace lockstep::quant {
namespace {

template <class V, template <class> class Tile, Format kActivation>
void run_format(const MatmulCall& call) noexcept {
  run_panels<V, Tile<V>>(call, kActivation);
}

template <class V>
void run_q4x(const MatmulCall& call) noexcept {
  run_panels<V>(call, Format::q8_0, TileQ4X<V>(call.side));
}

template <class V>
constexpr PanelRuns make_panel_runs() noexcept {
  return {.q4_0 = run_format<V, TileQ4_0, Format::q8_0>,
          .q4_1 = run_format<V, TileQ4_1, Format::q8_0>,
          .q5_0 = run_format<V, TileQ5_0, Format::q8_0>,
          .q5_1 = run_format<V, TileQ5_1, Format::q8_0>,
          .q8_0 = run_format<V, TileQ8_0, Format::q8_0>,
          .q2_k = run_format<V, TileQ2_K, Format::q8_0>,
          .q3_k = run_format<V, TileQ3_K, Format::q8_k>,
          .q4_k = run_format<V, TileQ4_K, Format::q8_k>,
          .q5_k = run_format<V, TileQ5_K, Format::q8_0>,
          .q6_k = run_format<V, TileQ6_K, Format::q8_0>,
          .iq4_nl = run_format<V, TileIQ4_NL, Format::q8_0>,
          .iq4_xs = run_format<V, TileIQ4_XS, Format::q8_k>,
          .mxfp4 = run_format<V, TileMXFP4, Format::q8_0>,
          .nvfp4 = run_format<V, TileNVFP4, Format::q8_0>,
          .q4x = run_q4x<V>};
}

}  // namespace
}  // namespace lockstep::quant
