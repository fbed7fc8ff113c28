// Which nodes need no barrier between them, and which of those must stay with one worker. Knows no
// patterns: it follows from what the ops declare (ops/op.h).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.h"

namespace lockstep {

// Puts the nodes of the graph, in its order, into plan nodes and stages with chains. `roots`: by
// value id, the value whose memory it uses.
struct StagedNodes {
  std::vector<PlannedNode> nodes;
  std::vector<Stage> stages;
};
StagedNodes build_stages(const ops::Graph& graph, const PlanOptions& options,
                         const std::vector<std::uint32_t>& roots);

}  // namespace lockstep
