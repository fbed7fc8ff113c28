// A job that is killed for memory in its third hour has told nobody why; a sum before it starts
// can. All sources are optional: what is missing does not limit.
#include "topology/memory_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "topology/cgroup.h"

namespace lockstep::topology {
namespace {

namespace fs = std::filesystem;

// Limits beyond this are "none" in version 1's way of saying so.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_bytes(const fs::path& file) {
  return parse_bytes(first_line(file));
}

// The value of "name value" or "Node 0 name: value kB" in a file of such lines, in its own unit.
std::optional<std::uint64_t> field(const fs::path& file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word != name) continue;
      words >> word;
      return parse_bytes(word);
    }
  }
  return std::nullopt;
}

std::uint64_t kibibytes(const fs::path& file, std::string_view name) {
  return field(file, name).value_or(0) * 1024;
}

std::uint64_t left_of(std::uint64_t limit, std::uint64_t used) {
  return limit > used ? limit - used : 0;
}

void lower(MemoryBudget& budget, std::uint64_t bytes, const std::string& reason) {
  if (bytes < budget.bytes) budget = {bytes, reason};
}

void lower_by_group(MemoryBudget& budget, const fs::path& group, GroupVersion version) {
  const bool two = version == GroupVersion::v2;
  const std::uint64_t used =
      read_bytes(group / (two ? "memory.current" : "memory.usage_in_bytes")).value_or(0);
  // File cache that nobody has open is dropped before anybody is killed.
  const fs::path stat = group / "memory.stat";
  const std::uint64_t cache =
      field(stat, two ? "inactive_file" : "total_inactive_file").value_or(0) +
      field(stat, two ? "active_file" : "total_active_file").value_or(0);
  const auto apply = [&](const char* name) {
    const auto limit = read_bytes(group / name);  // "max" is no number
    if (!limit || *limit >= kNoLimit) return;
    lower(budget, left_of(*limit, left_of(used, cache)),
          "limit of the control group " + group.string());
  };
  if (!two) return apply("memory.limit_in_bytes");
  apply("memory.max");
  apply("memory.high");  // beyond it the process is slowed down to a crawl
}

}  // namespace

MemoryBudget memory_budget(std::span<const unsigned> nodes, const MemorySources& sources) {
  MemoryBudget budget;
  if (const std::uint64_t free = kibibytes(sources.proc / "meminfo", "MemAvailable:"); free > 0) {
    lower(budget, free, "memory of the machine");
  }
  visit_groups(
      sources.proc / "self/cgroup", sources.cgroup, "memory",
      [&](const fs::path& group, GroupVersion version) { lower_by_group(budget, group, version); });
  if (!nodes.empty()) {
    std::uint64_t free = 0;
    std::string names;
    for (const unsigned node : nodes) {
      const fs::path file = sources.nodes / ("node" + std::to_string(node)) / "meminfo";
      free += kibibytes(file, "MemFree:") + kibibytes(file, "Active(file):") +
              kibibytes(file, "Inactive(file):");
      names += (names.empty() ? "" : ", ") + std::to_string(node);
    }
    if (free > 0) {
      lower(budget, free,
            std::string("memory of NUMA node") + (nodes.size() == 1 ? " " : "s ") + names);
    }
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const std::uint64_t used = kibibytes(sources.proc / "self/status", "VmSize:");
    lower(budget, left_of(limit.rlim_cur, used), "limit of the address space (ulimit -v)");
  }
  return budget;
}

}  // namespace lockstep::topology
