// The CPU quota of a container is invisible to every thread-counting call (nproc,
// hardware_concurrency, OpenMP), and a team larger than it is stopped for most of each 100 ms
// period, in the middle of a barrier. So the control files are read here, on the whole path of
// groups: the tightest one decides.
#include "topology/budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace lockstep::topology {
namespace {

namespace fs = std::filesystem;

// A missing or unreadable file gives an empty line.
std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

// "max" and -1 mean no limit; so does anything that is not a pair of positive numbers.
std::optional<double> ratio(std::string_view quota_text, std::string_view period_text) {
  const std::optional<std::int64_t> quota = parse_integer(quota_text);
  const std::optional<std::int64_t> period = parse_integer(period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> limit_v2(const fs::path& group) {
  std::istringstream line(first_line(group / "cpu.max"));
  std::string quota;
  std::string period;
  line >> quota >> period;
  return ratio(quota, period);
}

std::optional<double> limit_v1(const fs::path& group) {
  return ratio(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

using GroupLimit = std::optional<double> (*)(const fs::path& group);

void lower(std::optional<double>& limit, std::optional<double> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

// The smallest limit on the way from `mount` down to the group. Directories that are not there are
// passed over: in a container the path is often the host's, while the mount shows the container's
// own group as its root.
std::optional<double> smallest_limit(const fs::path& mount, const std::string& group,
                                     GroupLimit read) {
  std::optional<double> limit = read(mount);
  fs::path here = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    // A group outside of what the mount shows: none of the groups below is ours.
    if (part == "..") return std::nullopt;
    here /= part;
    lower(limit, read(here));
  }
  return limit;
}

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

bool has_cpu_controller(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

// "1.5", "2": three decimals at most, none that say nothing.
std::string format_quota(double quota) {
  std::ostringstream text;
  text.precision(quota < 1 ? 3 : 6);
  text << quota;
  return text.str();
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string core_noun(const Machine& machine) {
  return machine.smt ? "hardware thread" : "physical core";
}

std::string describe_cores(const Machine& machine) {
  std::string text =
      counted(machine.cores.size(), (machine.slow_cores == 0 ? "" : "fast ") + core_noun(machine));
  text += machine.selected ? " selected" : " in the affinity mask";
  if (machine.slow_cores != 0) {
    text += ", " + counted(machine.slow_cores, "slower core") + " left out";
  } else if (machine.total_cores > machine.cores.size() && !machine.smt) {
    text += " of a machine with " + std::to_string(machine.total_cores);
  }
  return text;
}

}  // namespace

std::optional<double> cgroup_cpu_limit(const fs::path& proc_self_cgroup, const fs::path& root) {
  std::optional<double> limit;
  std::ifstream groups(proc_self_cgroup);
  for (std::string line; std::getline(groups, line);) {
    const std::optional<GroupLine> group = parse_group_line(line);
    if (!group) continue;
    if (group->hierarchy == "0" && group->controllers.empty()) {
      // Version 2 alone is mounted at the root, beside version 1 in `unified`.
      lower(limit, smallest_limit(root, group->path, limit_v2));
      lower(limit, smallest_limit(root / "unified", group->path, limit_v2));
    } else if (has_cpu_controller(group->controllers)) {
      // Controllers mounted together have one directory named by all, and often links by each name.
      for (const fs::path& mount : {fs::path("cpu"), fs::path("cpu,cpuacct"),
                                    fs::path("cpuacct,cpu"), fs::path(group->controllers)}) {
        lower(limit, smallest_limit(root / mount, group->path, limit_v1));
      }
    }
  }
  return limit;
}

std::optional<double> cgroup_cpu_limit() {
  return cgroup_cpu_limit("/proc/self/cgroup", "/sys/fs/cgroup");
}

ThreadBudget thread_budget(const Machine& machine, std::optional<double> quota) {
  ThreadBudget budget;
  budget.cores = static_cast<unsigned>(std::max<std::size_t>(machine.cores.size(), 1));
  budget.quota = quota;
  budget.threads = budget.cores;
  const std::string cores = describe_cores(machine);
  if (!quota || !(*quota < budget.cores)) {
    budget.reason = counted(budget.threads, "thread") + ": " + cores;
    return budget;
  }
  budget.threads = *quota < 1 ? 1 : static_cast<unsigned>(*quota);
  const char* rounding = " rounded down";
  if (*quota < 1) rounding = " rounded up to the least possible";
  if (*quota == budget.threads) rounding = "";
  const std::string brief = counted(machine.cores.size(), core_noun(machine)) +
                            (machine.selected ? " selected" : " in the mask");
  budget.reason = counted(budget.threads, "thread") + ": cgroup CPU quota of " +
                  format_quota(*quota) + rounding + " (" + brief + ")";
  return budget;
}

}  // namespace lockstep::topology
