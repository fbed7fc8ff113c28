// What stands behind lockstep::Engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "quant/isa.h"
#include "runtime/executor.h"
#include "topology/budget.h"
#include "topology/machine.h"
#include "topology/placement.h"

namespace lockstep {

struct Engine::Impl {
  topology::Machine machine;
  topology::ThreadBudget budget;
  quant::Isa isa = quant::Isa::scalar;
  unsigned requested = 1;
  std::string runtime_name;
  std::string wait_policy;
  WorkerTime time_before;  // of the workers when the engine was made
  std::vector<std::string> warnings;
  std::unique_ptr<Executor> executor;

  WorkerTime worker_time() const;
};

}  // namespace lockstep
