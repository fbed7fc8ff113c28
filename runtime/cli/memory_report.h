// Where weights and caches lie, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

// {"owned_bytes", "local_bytes", "local_share", "remote_bytes", "huge_page_bytes",
//  "untouched_bytes", "nodes": [{"node", "owned_bytes", "local_bytes"}], "unknown"}
nlohmann::ordered_json memory_json(const MemoryReport& report);

// "weights: 1.04 GiB, 100.0 % local; node 0 532 MiB 100.0 %, node 1 ...; 1.02 GiB in huge pages"
std::string memory_text(const std::string& what, const MemoryReport& report);

}  // namespace lockstep::cli
