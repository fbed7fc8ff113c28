// How the chains of a stage are divided among the workers.
//
// Static: everyone computes the slice that split() gives, the one whose weights they loaded. That
// is all there is with several NUMA nodes. On one node the end of each slice is cut into chunks
// that others take over when they are done first: a worker who is held up costs the others about a
// chunk. Undisturbed, everyone computes all of their slice. Rejected: one queue for all (decoding
// on two quiet cores, 110 M and 1.1 B weights: 0.84 and 0.96 of the speed of static slices).
#pragma once

#include "runtime/plan.h"

namespace lockstep {

// Fills chains[].own and `chunks` of the stage.
void divide(Stage& stage, const std::vector<PlannedNode>& nodes, const ops::Graph& graph,
            const PlanOptions& options);

}  // namespace lockstep
