// Looking at an output's name before the work: what cannot be made in the end is refused at once.
#pragma once

#include <string>

namespace lockstep::cli {

// Throws Error(cannot_create) if something has the name already or its folder does not exist.
void require_creatable(const std::string& path);
// The same, but an ordinary file may be there and will be replaced: never a folder or a device.
void require_replaceable(const std::string& path);
// The one or the other: `force` is the user's --force.
void require_output(const std::string& path, bool force);

}  // namespace lockstep::cli
