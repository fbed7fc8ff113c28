// What `lockstep --version` says: enough to tell two builds apart in a report.
#pragma once

#include <string>

namespace lockstep::cli {

std::string version_text();

}  // namespace lockstep::cli
