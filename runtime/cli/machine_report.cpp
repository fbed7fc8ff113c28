// The JSON form is made first and the text is a rendering of it, so that the two cannot disagree.
#include "runtime/cli/machine_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "ops/matrix.h"
#include "quant/format.h"
#include "quant/isa.h"
#include "quant/kernels.h"
#include "runtime/cli/placement_options.h"
#include "topology/budget.h"
#include "topology/machine.h"
#include "topology/memory_policy.h"
#include "topology/placement.h"

namespace lockstep::cli {

using nlohmann::ordered_json;

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "madvise" of "always [madvise] never".
std::string huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == line.npos || close == line.npos || close < open) return "unknown";
  return line.substr(open + 1, close - open - 1);
}

ordered_json isa_names(quant::IsaSet set) {
  ordered_json names = ordered_json::array();
  for (const quant::Isa isa : quant::kAllIsas) {
    if (set.has(isa)) names.push_back(quant::name_of(isa));
  }
  return names;
}

ordered_json topology_json(const topology::Machine& machine) {
  ordered_json nodes = ordered_json::array();
  for (const topology::MemoryNode& node : machine.nodes) {
    ordered_json cores = ordered_json::array();
    for (const unsigned core : node.cores) cores.push_back(machine.cores.at(core).os_index);
    nodes.push_back(
        {{"node", node.os_index}, {"memory_bytes", node.memory_bytes}, {"cores", cores}});
  }
  ordered_json cores = ordered_json::array();
  for (const topology::Core& core : machine.cores) {
    cores.push_back({{"core", core.os_index},
                     {"node", machine.nodes.at(core.node).os_index},
                     {"processors", core.processors}});
  }
  return {{"cpu", machine.cpu_model},
          {"packages", machine.packages},
          {"total_cores", machine.total_cores},
          {"total_processors", machine.total_processors},
          {"mask_processors", machine.mask_processors},
          {"this_system", machine.is_this_system},
          {"nodes", nodes},
          {"usable_cores", cores}};
}

ordered_json workers_json(const topology::Machine& machine, const topology::Placement& placement) {
  ordered_json workers = ordered_json::array();
  for (std::size_t i = 0; i < placement.workers.size(); ++i) {
    const topology::Worker& worker = placement.workers[i];
    const topology::Core& core = machine.cores.at(worker.core);
    workers.push_back({{"worker", i},
                       {"core", core.os_index},
                       {"processor", worker.processor},
                       {"node", machine.nodes.at(core.node).os_index}});
  }
  return workers;
}

ordered_json kernels_json(std::string_view isa_name) {
  quant::Isa chosen = quant::Isa::scalar;
  for (const quant::Isa isa : quant::kAllIsas) {
    if (quant::name_of(isa) == isa_name) chosen = isa;
  }
  ordered_json kernels;
  for (const quant::FormatTraits& format : quant::all_formats()) {
    if (!format.can_decode()) continue;  // can be listed, but not computed with
    if (const quant::MatmulKernel* kernel = ops::find_kernel(format.format, chosen)) {
      kernels[std::string(format.name)] = kernel->name;
    }
  }
  return kernels;
}

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string join(const ordered_json& values, std::string_view separator) {
  std::string out;
  for (const ordered_json& value : values) {
    out += fmt::format("{}{}", out.empty() ? "" : separator, text_of(value));
  }
  return out;
}

std::string nodes_text(const ordered_json& topology) {
  std::string out;
  for (const ordered_json& node : topology["nodes"]) {
    const double gib = node["memory_bytes"].get<double>() / (1024.0 * 1024.0 * 1024.0);
    out += fmt::format("  node {:<10} {:.1f} GiB, cores {}\n", text_of(node["node"]), gib,
                       node["cores"].empty() ? "none" : join(node["cores"], " "));
  }
  return out;
}

std::string workers_text(const ordered_json& placement) {
  std::string out;
  for (const ordered_json& worker : placement["workers"]) {
    out +=
        fmt::format("  worker {:<8} core {}, processor {}, node {}\n", text_of(worker["worker"]),
                    text_of(worker["core"]), text_of(worker["processor"]), text_of(worker["node"]));
  }
  return out;
}

std::string row(std::string_view label, const std::string& value) {
  return fmt::format("  {:<15} {}\n", label, value);
}

}  // namespace

std::string memory_binding() {
  const std::string& refusal = topology::memory_policy_refusal();
  return refusal.empty() ? "permitted" : refusal + "; pages go where they are first touched";
}

std::string numa_balancing() {
  const std::string line = first_line("/proc/sys/kernel/numa_balancing");
  if (line.empty()) return "not available";
  return line == "0" ? "off" : "on";
}

ordered_json machine_json(const Engine& engine) {
  const topology::ThreadBudget& budget = engine.budget();
  const topology::Placement& placement = engine.placement();
  ordered_json threads = {{"granted", engine.threads()},
                          {"requested", engine.requested_threads()},
                          {"budget", budget.threads},
                          {"reason", budget.reason},
                          {"cores_in_mask", budget.cores}};
  threads["cpu_quota"] = budget.quota ? ordered_json(*budget.quota) : ordered_json(nullptr);
  return {{"topology", topology_json(engine.machine())},
          {"threads", threads},
          {"placement",
           {{"pinned", placement.pinned},
            {"oversubscribed", placement.oversubscribed},
            {"note", placement.note},
            {"workers", workers_json(engine.machine(), placement)}}},
          {"instruction_sets",
           {{"built", isa_names(quant::built_isas())},
            {"detected", isa_names(quant::detect_isas())},
            {"chosen", engine.isa()}}},
          {"kernels", kernels_json(engine.isa())},
          {"openmp_runtime", engine.openmp_runtime()},
          {"wait_policy", engine.wait_policy()},
          {"huge_pages", huge_pages()},
          {"numa_balancing", numa_balancing()},
          {"numa_policy", name_of(engine.numa())},
          {"memory_binding", memory_binding()},
          {"warnings", engine.warnings()}};
}

std::string machine_text(const Engine& engine) {
  const ordered_json report = machine_json(engine);
  const ordered_json& topology = report["topology"];
  const ordered_json& threads = report["threads"];
  const ordered_json& placement = report["placement"];
  const ordered_json& isas = report["instruction_sets"];
  std::string out = "machine\n";
  out += row("processor",
             topology["cpu"].get<std::string>().empty() ? "unknown" : text_of(topology["cpu"]));
  out += row("packages", text_of(topology["packages"]));
  out += row("cores", fmt::format("{} of {} usable", topology["usable_cores"].size(),
                                  text_of(topology["total_cores"])));
  out += row("processors",
             fmt::format("{} of {} in the affinity mask", text_of(topology["mask_processors"]),
                         text_of(topology["total_processors"])));
  out += nodes_text(topology);
  out += "threads\n";
  out += row("budget", text_of(threads["reason"]));
  out += row("team", fmt::format("{} asked for, {} granted", text_of(threads["requested"]),
                                 text_of(threads["granted"])));
  const std::string note = text_of(placement["note"]);
  out += row("pinned", placement["pinned"].get<bool>() ? "yes" : "no: " + note);
  out += workers_text(placement);
  out += "kernels\n";
  out += row("built", join(isas["built"], ", "));
  out += row("detected", join(isas["detected"], ", "));
  out += row("chosen", text_of(isas["chosen"]));
  for (const auto& [format, kernel] : report["kernels"].items())
    out += row(format, text_of(kernel));
  out += "system\n";
  out += row("OpenMP runtime", text_of(report["openmp_runtime"]));
  out += row("waiting", text_of(report["wait_policy"]));
  out += row("huge pages", text_of(report["huge_pages"]));
  out += row("NUMA balancing", text_of(report["numa_balancing"]));
  out += row("NUMA policy", text_of(report["numa_policy"]));
  out += row("memory binding", text_of(report["memory_binding"]));
  return out;
}

}  // namespace lockstep::cli
