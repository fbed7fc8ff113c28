// The CPU quota of a container is invisible to every thread-counting call (nproc,
// hardware_concurrency, OpenMP), and a team larger than it is stopped for most of each 100 ms
// period, in the middle of a barrier. So the control files are read here, on the whole path of
// groups: the tightest one decides.
#include "topology/budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <system_error>

#include "topology/cgroup.h"

namespace lockstep::topology {
namespace {

namespace fs = std::filesystem;

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
  visit_groups(proc_self_cgroup, root, "cpu", [&](const fs::path& group, GroupVersion version) {
    const auto found = version == GroupVersion::v2 ? limit_v2(group) : limit_v1(group);
    if (found && (!limit || *found < *limit)) limit = found;
  });
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
