// What synchronization costs on this machine with the OpenMP runtime of this build: entering and
// leaving a parallel region, and one barrier, by size of the team. The floor under every plan:
// decoding passes five barriers a layer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/bench/samples.h"
#include "runtime/executor.h"
#include "runtime/openmp_runtime.h"
#include "topology/machine.h"

namespace {

using namespace lockstep;

struct Cost {
  unsigned workers = 0;
  double region = 0;  // seconds, medians of the rounds
  double barrier = 0;
};

// Workers are pinned as for a model; more of them than cores are not pinned at all.
Cost measure(const topology::Machine& machine, unsigned workers, unsigned rounds, unsigned count) {
  Executor executor(topology::Placement::make(machine, workers, ""));
  bench::Samples regions;
  bench::Samples barriers;
  executor.team([](const ops::Lane&) noexcept {});
  for (unsigned round = 0; round < rounds; ++round) {
    double begin = bench::seconds();
    for (unsigned i = 0; i < count; ++i) executor.team([](const ops::Lane&) noexcept {});
    regions.add((bench::seconds() - begin) / count);
    double seconds = 0;
    executor.team([&](const ops::Lane& lane) noexcept {
      Executor::barrier();
      const double start = bench::seconds();
      for (unsigned i = 0; i < count; ++i) Executor::barrier();
      if (lane.worker == 0) seconds = bench::seconds() - start;
    });
    barriers.add(seconds / count);
  }
  return {executor.workers(), regions.median(), barriers.median()};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cost of a parallel region and of a barrier, by size of the team"};
  std::vector<unsigned> threads;
  unsigned rounds = 15;
  unsigned count = 1000;
  bool json = false;
  app.add_option("-t,--threads", threads, "sizes of the team (default: 1, 2, ... twice the cores)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("-r,--rounds", rounds, "rounds of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--count", count, "regions and barriers in a round")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--json", json, "machine-readable result");
  CLI11_PARSE(app, argc, argv);

  const topology::Machine machine = topology::Machine::detect();
  if (threads.empty()) {
    const auto cores = static_cast<unsigned>(machine.cores.size());
    for (unsigned n = 1; n < 2 * cores; n *= 2) threads.push_back(n);
    threads.push_back(2 * cores);
  }
  nlohmann::ordered_json cells = nlohmann::ordered_json::array();
  if (!json)
    fmt::print("{}\n\n| workers | region, us | barrier, us |\n|---:|---:|---:|\n",
               openmp_runtime_name());
  for (const unsigned n : threads) {
    const Cost cost = measure(machine, n, rounds, count);
    if (json) {
      cells.push_back({{"workers", cost.workers},
                       {"region_seconds", cost.region},
                       {"barrier_seconds", cost.barrier}});
    } else {
      fmt::print("| {} | {:.2f} | {:.2f} |\n", cost.workers, 1e6 * cost.region, 1e6 * cost.barrier);
      std::fflush(stdout);
    }
  }
  if (json) {
    const nlohmann::ordered_json result = {{"openmp", openmp_runtime_name()}, {"cells", cells}};
    fmt::print("{}\n", result.dump(2));
  }
}
