// The kernels on panels of one instruction set, made from the class V of its vector.h; a call with
// one token goes to the class One, where that is another.
#pragma once

#include <type_traits>

#include "quant/panels/blocks.inl.h"
#include "quant/panels/k_blocks.inl.h"
#include "quant/panels/q4x.inl.h"

namespace lockstep::quant {
namespace {

template <class V, class One, template <class> class Tile, class... Side>
LOCKSTEP_INLINE void run_tiles(const MatmulCall& call, Format activation, Side... side) noexcept {
  if constexpr (!std::is_same_v<V, One>) {
    if (call.tokens == 1) return run_one_token<One>(call, activation, Tile<One>(side...));
  }
  run_panels<V>(call, activation, Tile<V>(side...));
}

template <class V, class One, template <class> class Tile, Format kActivation>
void run_format(const MatmulCall& call) noexcept {
  run_tiles<V, One, Tile>(call, kActivation);
}

template <class V, class One>
void run_q4x(const MatmulCall& call) noexcept {
  run_tiles<V, One, TileQ4X>(call, Format::q8_0, call.side);
}

// Those of blocks.inl.h and q4x.inl.h.
template <class V, class One = V>
constexpr PanelRuns make_block_runs() noexcept {
  return {.q4_0 = run_format<V, One, TileQ4_0, Format::q8_0>,
          .q4_1 = run_format<V, One, TileQ4_1, Format::q8_0>,
          .q5_0 = run_format<V, One, TileQ5_0, Format::q8_0>,
          .q5_1 = run_format<V, One, TileQ5_1, Format::q8_0>,
          .q8_0 = run_format<V, One, TileQ8_0, Format::q8_0>,
          .iq4_nl = run_format<V, One, TileIQ4_NL, Format::q8_0>,
          .mxfp4 = run_format<V, One, TileMXFP4, Format::q8_0>,
          .nvfp4 = run_format<V, One, TileNVFP4, Format::q8_0>,
          .q4x = run_q4x<V, One>};
}

// `runs` with those of k_blocks.inl.h added.
template <class V, class One = V>
constexpr PanelRuns add_k_block_runs(PanelRuns runs) noexcept {
  runs.q2_k = run_format<V, One, TileQ2_K, Format::q8_0>;
  runs.q3_k = run_format<V, One, TileQ3_K, Format::q8_k>;
  runs.q4_k = run_format<V, One, TileQ4_K, Format::q8_k>;
  runs.q5_k = run_format<V, One, TileQ5_K, Format::q8_0>;
  runs.q6_k = run_format<V, One, TileQ6_K, Format::q8_0>;
  runs.iq4_xs = run_format<V, One, TileIQ4_XS, Format::q8_k>;
  return runs;
}

template <class V>
constexpr PanelRuns make_panel_runs() noexcept {
  return add_k_block_runs<V>(make_block_runs<V>());
}

}  // namespace
}  // namespace lockstep::quant
