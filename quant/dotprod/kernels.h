// What the dotprod instruction set hands to dispatch.cpp; row arithmetic is that of NEON.
#pragma once

#include "quant/kernels.h"

namespace lockstep::quant::dotprod {

// On the 8-row panels of packing.h.
extern const PanelRuns kPanelRuns;

}  // namespace lockstep::quant::dotprod
