// The fusions that have names: a consumer that runs in the stage of its producer, part by part
// while the values are hot, instead of behind a barrier. The planner needs no names to find them;
// people do, to switch one off and see that the bits stay (PlanOptions::unfused).
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct Fusion {
  std::string_view name;
  std::string_view producer, consumer;  // names of ops
};

// One name may stand for several pairs; they are neighbours.
std::span<const Fusion> fusions() noexcept;
// Null if the pair has no name.
const Fusion* find_fusion(std::string_view producer, std::string_view consumer) noexcept;
// Throws Error(usage) that lists the names if there is none of this name.
void check_fusion_name(std::string_view name);

}  // namespace lockstep
