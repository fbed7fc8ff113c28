// What `lockstep plan` shows of a plan.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/plan.h"

namespace lockstep::cli {

struct PlanOf {
  std::string model;  // "llama 1.1B q4_0"
  std::size_t tokens = 1;
  std::size_t logits = 1;
};

nlohmann::ordered_json plan_json(const PlanOf& of, const Plan& plan);
// Layers that are planned like the one before are told of in one line. `buffers`: with the arena.
std::string plan_text(const PlanOf& of, const Plan& plan, bool buffers);

}  // namespace lockstep::cli
