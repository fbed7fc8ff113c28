// Streaming reads from every NUMA node's memory by the cores of every node: the matrix that a study
// of placement is read against. On one node it is one figure, the roof of decoding.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/bench/roofs.h"
#include "runtime/bench/samples.h"
#include "topology/machine.h"
#include "topology/memory_policy.h"
#include "topology/node_memory.h"
#include "topology/residency.h"

namespace {

using namespace lockstep;

struct Cell {
  unsigned cores_on = 0, memory_on = 0;  // OS indices
  unsigned workers = 0;
  double bytes_per_s = 0;  // median of the rounds
  double local_share = 0;  // of the memory, on the node it should be on
};

// Memory of one node. The kernel is asked for it, and the cores of the node touch it first, if it
// has any.
topology::NodeBuffer memory_of(const topology::Machine& machine, unsigned node, std::size_t bytes) {
  topology::NodeBuffer buffer(bytes);
  topology::prefer_node(buffer.data(), bytes, node);
  EngineOptions options;
  const auto found = std::ranges::find(machine.nodes, node, &topology::MemoryNode::os_index);
  if (!found->cores.empty()) options.nodes = {node};
  bench::touch_in_parts(Engine::create(options), buffer);
  return buffer;
}

Cell measure(const topology::NodeBuffer& buffer, unsigned cores_on, unsigned memory_on,
             unsigned rounds) {
  EngineOptions options;
  options.nodes = {cores_on};
  const Engine engine = Engine::create(options);
  bench::Samples rates;
  for (unsigned round = 0; round < rounds; ++round) rates.add(bench::stream_rate(engine, buffer));
  const topology::Residency pages = topology::residency_of(buffer.data(), buffer.size());
  const double local =
      static_cast<double>(pages.on(memory_on)) / static_cast<double>(buffer.size());
  return {cores_on, memory_on, engine.threads(), rates.median(), std::min(1.0, local)};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Streaming reads from the memory of every NUMA node by the cores of every node"};
  std::size_t mebibytes = 256;
  unsigned rounds = 9;
  bool json = false;
  app.add_option("--mib", mebibytes, "memory on every node, far more than the caches hold")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-r,--rounds", rounds, "rounds of which the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", json, "one JSON object instead of a table");
  CLI11_PARSE(app, argc, argv);
  try {
    const topology::Machine machine = Engine::create({}).machine();
    std::vector<Cell> cells;
    for (const topology::MemoryNode& memory : machine.nodes) {
      if (memory.memory_bytes == 0) continue;
      const auto buffer = memory_of(machine, memory.os_index, mebibytes << 20);
      for (const topology::MemoryNode& cores : machine.nodes) {
        if (cores.cores.empty()) continue;
        cells.push_back(measure(buffer, cores.os_index, memory.os_index, rounds));
      }
    }
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    if (!json)
      fmt::print("{:>9} {:>10} {:>8} {:>8} {:>9}\n", "cores on", "memory on", "workers", "GB/s",
                 "local");
    for (const Cell& cell : cells) {
      rows.push_back({{"cores_on", cell.cores_on},
                      {"memory_on", cell.memory_on},
                      {"workers", cell.workers},
                      {"bytes_per_s", cell.bytes_per_s},
                      {"local_share", cell.local_share}});
      if (!json) {
        fmt::print("{:>9} {:>10} {:>8} {:>8.2f} {:>7.1f} %\n", cell.cores_on, cell.memory_on,
                   cell.workers, cell.bytes_per_s / 1e9, 100 * cell.local_share);
      }
    }
    if (json) fmt::print("{}\n", nlohmann::ordered_json{{"cells", rows}}.dump(2));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bandwidth_bench: error: {}\n", error.what());
    return 1;
  }
  return 0;
}
