// What stands behind lockstep::Engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "quant/isa.h"
#include "runtime/executor.h"
#include "runtime/page_policy.h"
#include "topology/budget.h"
#include "topology/core_claims.h"
#include "topology/machine.h"
#include "topology/placement.h"

namespace lockstep {

struct Engine::Impl {
  topology::Machine machine;
  topology::ThreadBudget budget;
  quant::Isa isa = quant::Isa::scalar;
  unsigned requested = 1;
  EngineOptions options;
  std::string runtime_name;
  std::string wait_policy;
  WorkerTime time_before;  // of the workers when the engine was made
  std::vector<std::string> warnings;
  std::unique_ptr<Executor> executor;
  topology::CoreClaims claims;  // where several ranks share the machine

  WorkerTime worker_time() const;
  // Nodes that rows must not leave: one where any worker reads any row from its own node.
  unsigned rows_nodes() const {
    return options.numa == NumaPolicy::replicate ? 1 : executor->placement().nodes;
  }
  PagePolicy page_policy() const { return {options, machine, executor->placement()}; }
};

}  // namespace lockstep
