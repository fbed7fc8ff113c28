// Where weights and caches lie, for people and for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

// {"owned_bytes", "local_bytes", "local_share", "remote_bytes", "huge_page_bytes",
//  "untouched_bytes", "nodes": [{"node", "owned_bytes", "local_bytes"}], "unknown"}
nlohmann::ordered_json memory_json(const MemoryReport& report);

// "weights: 1.04 GiB, 100.0 % local; node 0 532 MiB 100.0 %, node 1 ...; 1.02 GiB in huge pages"
std::string memory_text(const std::string& what, const MemoryReport& report);

// The most memory that this process had in pages at any time, in bytes; 0 where the system does not
// tell. Not getrusage(): its figure begins with that of the process that started this one.
std::uint64_t peak_memory();

}  // namespace lockstep::cli
