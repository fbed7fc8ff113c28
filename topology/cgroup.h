// The control groups that a process is in, as directories of control files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::topology {

enum class GroupVersion : unsigned char { v1, v2 };

// Calls `visit` for every directory on the way from a mount point down to this process's group for
// the controller ("cpu", "memory"): a limit anywhere on that way binds. Directories need not exist:
// in a container the path is often the host's, while the mount shows the container's own group as
// its root. `proc_self_cgroup` is the file that names the groups (/proc/self/cgroup), `root` the
// mount point (/sys/fs/cgroup); both are parameters so that a fake tree can be tested.
using VisitGroup =
    std::function<void(const std::filesystem::path& directory, GroupVersion version)>;
void visit_groups(const std::filesystem::path& proc_self_cgroup, const std::filesystem::path& root,
                  std::string_view controller, const VisitGroup& visit);

// The first line of a control file; empty if it is missing or cannot be read.
std::string first_line(const std::filesystem::path& file);

}  // namespace lockstep::topology
