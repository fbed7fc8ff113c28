// Version 2 has one tree for all controllers, version 1 a tree for each; many systems have both.
#include "topology/cgroup.h"

#include <fstream>
#include <optional>
#include <sstream>

namespace lockstep::topology {
namespace {

namespace fs = std::filesystem;

// One line of /proc/self/cgroup, "4:cpu,cpuacct:/user.slice". The path may hold colons itself.
struct GroupLine {
  std::string hierarchy;
  std::string controllers;
  std::string path;
};

std::optional<GroupLine> parse_group_line(const std::string& line) {
  const std::size_t first = line.find(':');
  if (first == std::string::npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return GroupLine{line.substr(0, first), line.substr(first + 1, second - first - 1),
                   line.substr(second + 1)};
}

bool has_controller(const std::string& controllers, std::string_view wanted) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

void visit_path(const fs::path& mount, const std::string& group, GroupVersion version,
                const VisitGroup& visit) {
  const fs::path relative = fs::path(group).relative_path();
  // A group outside of what the mount shows: none of the groups below is ours.
  for (const fs::path& part : relative) {
    if (part == "..") return;
  }
  fs::path here = mount;
  visit(here, version);
  for (const fs::path& part : relative) visit(here /= part, version);
}

}  // namespace

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

void visit_groups(const fs::path& proc_self_cgroup, const fs::path& root,
                  std::string_view controller, const VisitGroup& visit) {
  std::ifstream groups(proc_self_cgroup);
  for (std::string line; std::getline(groups, line);) {
    const std::optional<GroupLine> group = parse_group_line(line);
    if (!group) continue;
    if (group->hierarchy == "0" && group->controllers.empty()) {
      // Version 2 alone is mounted at the root, beside version 1 in `unified`.
      visit_path(root, group->path, GroupVersion::v2, visit);
      visit_path(root / "unified", group->path, GroupVersion::v2, visit);
    } else if (has_controller(group->controllers, controller)) {
      // Controllers mounted together have one directory named by all, and often links by each name.
      visit_path(root / controller, group->path, GroupVersion::v1, visit);
      if (group->controllers != controller) {
        visit_path(root / group->controllers, group->path, GroupVersion::v1, visit);
        // The order of the names in the file and in the directory may differ: "cpuacct,cpu".
        const std::size_t comma = group->controllers.find(',');
        const std::string turned =
            group->controllers.substr(comma + 1) + "," + group->controllers.substr(0, comma);
        visit_path(root / turned, group->path, GroupVersion::v1, visit);
      }
    }
  }
}

}  // namespace lockstep::topology
