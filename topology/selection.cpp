// Selecting makes a smaller machine, so that nothing else has to know of it.
#include "topology/selection.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>
#include <tuple>

namespace lockstep::topology {
namespace {

bool contains(const std::vector<unsigned>& list, unsigned value) {
  return std::ranges::find(list, value) != list.end();
}

std::string quoted_list(const std::vector<unsigned>& list) {
  return list.empty() ? "none" : format_index_list(list);
}

void check_known(const std::vector<unsigned>& wanted, const std::vector<unsigned>& usable,
                 const char* what) {
  for (const unsigned one : wanted) {
    if (contains(usable, one)) continue;
    throw std::invalid_argument(std::string(what) + " " + std::to_string(one) +
                                " cannot be used; usable are " + quoted_list(usable));
  }
}

// A machine with the same nodes and no cores.
Machine without_cores(const Machine& machine) {
  Machine empty = machine;
  empty.cores.clear();
  for (MemoryNode& node : empty.nodes) node.cores.clear();
  empty.selected = true;
  return empty;
}

void add_core(Machine& machine, Core core) {
  machine.nodes[core.node].cores.push_back(static_cast<unsigned>(machine.cores.size()));
  machine.cores.push_back(std::move(core));
}

// The largest number that a list may hold: far above any machine, and no range of it is long.
constexpr unsigned kMaxIndex = 1u << 20;

unsigned parse_index(std::string_view text, std::string_view whole) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMaxIndex) {
    throw std::invalid_argument("\"" + std::string(whole) +
                                "\" is not a list of numbers and ranges such as 0-3,8");
  }
  return value;
}

}  // namespace

Machine select(const Machine& machine, const Selection& selection) {
  std::vector<unsigned> nodes;
  std::vector<unsigned> processors;
  for (const MemoryNode& node : machine.nodes) {
    if (!node.cores.empty()) nodes.push_back(node.os_index);
  }
  for (const Core& core : machine.cores) {
    processors.insert(processors.end(), core.processors.begin(), core.processors.end());
  }
  check_known(selection.nodes, nodes, "node");
  check_known(selection.processors, processors, "processor");
  Machine part = without_cores(machine);
  part.selected = !selection.nodes.empty() || !selection.processors.empty();
  part.smt = selection.smt;
  for (const Core& core : machine.cores) {
    const unsigned node = machine.nodes[core.node].os_index;
    if (!selection.nodes.empty() && !contains(selection.nodes, node)) continue;
    Core kept = core;
    if (!selection.processors.empty()) {
      std::erase_if(kept.processors,
                    [&](unsigned one) { return !contains(selection.processors, one); });
    }
    if (kept.processors.empty()) continue;
    if (!selection.smt) {
      add_core(part, std::move(kept));
      continue;
    }
    for (const unsigned processor : kept.processors) {
      Core thread = kept;
      thread.processors = {processor};
      add_core(part, std::move(thread));
    }
  }
  if (part.cores.empty()) {
    throw std::invalid_argument("no processor is both in " + quoted_list(selection.processors) +
                                " and on the nodes " + quoted_list(selection.nodes));
  }
  return part;
}

std::vector<std::vector<unsigned>> groups_of(const Machine& machine, Level level) {
  // By group, then node; std::map keeps both in ascending order.
  std::map<std::pair<unsigned, unsigned>, std::vector<unsigned>> groups;
  for (unsigned i = 0; i < machine.cores.size(); ++i) {
    const Core& core = machine.cores[i];
    switch (level) {
      case Level::socket:
        groups[{core.package, 0}].push_back(i);
        break;
      case Level::node:
        groups[{core.node, 0}].push_back(i);
        break;
      case Level::cache:
        groups[{core.node, core.cache}].push_back(i);
        break;
    }
  }
  std::vector<std::vector<unsigned>> found;
  for (auto& [key, cores] : groups) {
    std::ranges::stable_sort(cores, {}, [&](unsigned core) { return machine.cores[core].node; });
    found.push_back(std::move(cores));
  }
  return found;
}

Machine largest_group(const Machine& machine, Level level) {
  const std::vector<std::vector<unsigned>> groups = groups_of(machine, level);
  const auto largest =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.size(); });
  Machine part = without_cores(machine);
  for (const unsigned core : *largest) add_core(part, machine.cores[core]);
  return part;
}

std::vector<unsigned> parse_index_list(std::string_view text) {
  std::vector<unsigned> indices;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const unsigned first = parse_index(part.substr(0, dash), text);
    const unsigned last = dash == part.npos ? first : parse_index(part.substr(dash + 1), text);
    for (unsigned i = first; i <= last; ++i) indices.push_back(i);
    if (last < first) parse_index("", text);
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::string format_index_list(std::vector<unsigned> indices) {
  std::ranges::sort(indices);
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(indices[i]);
    if (end > i + 1) text += "-" + std::to_string(indices[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace lockstep::topology
