// What `lockstep inspect --machine` shows: the machine, how many threads are used and why, where
// each worker runs, and which kernels this processor gets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

nlohmann::ordered_json machine_json(const Engine& engine);
std::string machine_text(const Engine& engine);

// Whether Linux moves pages by itself: "on", "off" or "not available".
std::string numa_balancing();
// "permitted", or why the kernel places no pages for us and what happens then.
std::string memory_binding();

}  // namespace lockstep::cli
