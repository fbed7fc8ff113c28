// Shares are of bytes that have pages.
#include "runtime/cli/memory_report.h"

#include <fmt/format.h>

#include <fstream>

#include "runtime/cli/units.h"

namespace lockstep::cli {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

nlohmann::ordered_json memory_json(const MemoryReport& report) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const NodeBytes& node : report.nodes) {
    nodes.push_back(
        {{"node", node.node}, {"owned_bytes", node.owned}, {"local_bytes", node.local}});
  }
  const std::uint64_t owned = report.owned();
  nlohmann::ordered_json json = {{"owned_bytes", owned},
                                 {"local_bytes", owned - report.remote()},
                                 {"local_share", share(owned - report.remote(), owned)},
                                 {"remote_bytes", report.remote()},
                                 {"huge_page_bytes", report.huge_pages},
                                 {"untouched_bytes", report.untouched},
                                 {"nodes", nodes}};
  if (!report.unknown.empty()) json["unknown"] = report.unknown;
  return json;
}

std::string memory_text(const std::string& what, const MemoryReport& report) {
  if (!report.unknown.empty()) {
    return fmt::format("{}: the system does not tell where the pages are ({})", what,
                       report.unknown);
  }
  const std::uint64_t owned = report.owned();
  std::string text = fmt::format("{}: {}, {:.1f} % local", what, humane_bytes(owned),
                                 100 * share(owned - report.remote(), owned));
  for (const NodeBytes& node : report.nodes) {
    text +=
        fmt::format("{} node {} {} {:.1f} %", node.node == report.nodes.front().node ? ";" : ",",
                    node.node, humane_bytes(node.owned), 100 * share(node.local, node.owned));
  }
  text += fmt::format("; {} in huge pages", humane_bytes(report.huge_pages));
  if (report.untouched != 0) {
    text += fmt::format(", {} not touched yet", humane_bytes(report.untouched));
  }
  return text;
}

std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::uint64_t kilobytes = 0;
    if (key == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace lockstep::cli
