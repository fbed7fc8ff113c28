// Placement options: see placement_options.h.
#include "runtime/cli/placement_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "topology/selection.h"

namespace lockstep::cli {
namespace {

constexpr std::pair<const char*, NumaPolicy> kPolicies[] = {
    {"rows", NumaPolicy::rows},
    {"one-node", NumaPolicy::one_node},
    {"interleave", NumaPolicy::interleave},
    {"none", NumaPolicy::none},
    {"replicate", NumaPolicy::replicate},
};
constexpr std::pair<const char*, NumaLevel> kLevels[] = {
    {"socket", NumaLevel::socket},
    {"node", NumaLevel::node},
    {"cache", NumaLevel::cache},
};

template <class Named>
std::vector<std::string> names_in(const Named& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.emplace_back(name);
  return names;
}

template <class Named>
auto value_named(const Named& table, std::string_view name) {
  const auto* const found = std::ranges::find(
      table, name, [](const auto& entry) { return std::string_view(entry.first); });
  return found == std::end(table) ? table[0].second : found->second;
}

std::vector<unsigned> index_list(const char* option, const std::string& text) {
  if (text.empty()) return {};
  try {
    return topology::parse_index_list(text);
  } catch (const std::invalid_argument& error) {
    throw Error(ErrorCode::usage, fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace

std::string_view name_of(NumaPolicy policy) noexcept {
  const auto* const found =
      std::ranges::find(kPolicies, policy, &std::pair<const char*, NumaPolicy>::second);
  return found == std::end(kPolicies) ? "?" : found->first;
}

void PlacementArguments::add_to(CLI::App& app) {
  app.add_option("--numa", numa,
                 "rows (default): a worker's rows in the memory of its node;\n"
                 "one-node: workers and memory of one node; interleave: pages\n"
                 "on all nodes in turn; none: where the loading thread touches\n"
                 "them; replicate: a copy of the weights on every node")
      ->type_name("POLICY")
      ->check(CLI::IsMember(names_in(kPolicies)));
  app.add_option("--numa-level", level,
                 "What workers are spread over and one-node means: socket,\n"
                 "node (default) or cache (the last level)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(names_in(kLevels)));
  app.add_option("--nodes", nodes, "Use these NUMA nodes alone, such as 0,2")->type_name("LIST");
  app.add_option("--cores", processors, "Use these processors alone, such as 0-23,48")
      ->type_name("LIST");
  app.add_flag("--smt", smt, "A worker on every hardware thread, not on every core");
  app.add_flag("--small-pages", small_pages, "Do not ask for huge pages");
}

void PlacementArguments::apply(EngineOptions& options) const {
  options.numa = value_named(kPolicies, numa);
  options.level = value_named(kLevels, level);
  options.nodes = index_list("--nodes", nodes);
  options.processors = index_list("--cores", processors);
  options.smt = smt;
  options.huge_pages = !small_pages;
}

}  // namespace lockstep::cli
