// Making an engine: look at the machine, decide the team, pin it, and check what really came of it.
#include "runtime/engine.h"

#include <cstdlib>
#include <map>
#include <stdexcept>

#include "runtime/openmp_runtime.h"
#include "topology/selection.h"
#include "topology/thread_time.h"

namespace lockstep {
namespace {

// More than any machine has; catches a typing error before it becomes a thousand stacks.
constexpr unsigned kMaxThreads = 4096;

quant::Isa choose_isa(const std::string& option) {
  std::string forced = option;
  const char* variable = std::getenv("LOCKSTEP_ISA");
  if (forced.empty() && variable) forced = variable;
  try {
    return quant::choose_isa(quant::built_isas() & quant::detect_isas(), forced);
  } catch (const std::invalid_argument& error) {
    throw Error(ErrorCode::usage, error.what());
  }
}

std::string plural(unsigned count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Ranks of one machine that were each given all of it.
void claim_cores(Engine::Impl& engine) {
  std::vector<unsigned> processors;
  for (const topology::Worker& worker : engine.executor->placement().workers) {
    processors.push_back(worker.processor);
  }
  engine.claims = topology::CoreClaims(processors);
  if (engine.claims.taken().empty()) return;
  engine.warnings.push_back(
      "processors " + topology::format_index_list(engine.claims.taken()) +
      " are used by another rank on this machine, too: give each rank cores of its own "
      "(srun --cpu-bind=cores, mpirun --bind-to numa, or --nodes)");
}

void check_team(Engine::Impl& engine) {
  const Executor& executor = *engine.executor;
  if (executor.workers() < engine.requested) {
    engine.warnings.push_back("asked for " + plural(engine.requested, "thread") +
                              ", OpenMP granted " + std::to_string(executor.workers()) +
                              " (look at OMP_THREAD_LIMIT and OMP_DYNAMIC); results are the same");
  }
  std::map<int, unsigned> seen;  // processor -> first worker
  for (unsigned worker = 0; worker < executor.workers(); ++worker) {
    const WorkerReport& report = executor.reports()[worker];
    if (report.pin_failed) {
      engine.warnings.push_back("worker " + std::to_string(worker) +
                                " could not be pinned to its processor: the system refused");
    }
    if (report.processor < 0 || !executor.placement().pinned) continue;
    const auto [other, fresh] = seen.emplace(report.processor, worker);
    if (!fresh && engine.machine.is_this_system) {
      engine.warnings.push_back("workers " + std::to_string(other->second) + " and " +
                                std::to_string(worker) + " share processor " +
                                std::to_string(report.processor) +
                                ": expect a fraction of the speed");
    }
  }
  if (executor.placement().pinned && topology::is_one_of_several_ranks()) claim_cores(engine);
  const std::vector<std::string> runtimes = loaded_openmp_runtimes();
  if (runtimes.size() > 1) {
    engine.warnings.push_back("more than one OpenMP runtime is loaded (" + runtimes[0] + ", " +
                              runtimes[1] + "): they compete for the cores");
  }
}

topology::Machine detect_machine() {
  Executor::release_this_thread();
  try {
    return topology::Machine::detect(
        topology::user_openmp_binding().empty() ? std::vector<unsigned>() : openmp_processors());
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::no_resource,
                std::string("cannot read the machine's topology: ") + error.what());
  }
}

topology::Level level_of(NumaLevel level) {
  switch (level) {
    case NumaLevel::socket:
      return topology::Level::socket;
    case NumaLevel::cache:
      return topology::Level::cache;
    case NumaLevel::node:
      break;
  }
  return topology::Level::node;
}

// The part of the machine that the options leave.
topology::Machine select_machine(const EngineOptions& options) {
  const topology::Machine machine = detect_machine();
  try {
    topology::Machine part = topology::select(
        machine, {.nodes = options.nodes, .processors = options.processors, .smt = options.smt});
    if (options.numa != NumaPolicy::one_node) return part;
    return topology::largest_group(part, level_of(options.level));
  } catch (const std::invalid_argument& error) {
    throw Error(ErrorCode::usage, error.what());
  }
}

// Threads that the user bound are where they are; their rows and pages follow them.
void adopt_user_binding(Engine::Impl& engine) {
  Executor& executor = *engine.executor;
  if (topology::user_openmp_binding().empty() || executor.placement().oversubscribed) return;
  std::vector<int> processors;
  for (const WorkerReport& report : executor.reports()) processors.push_back(report.processor);
  executor.adopt(executor.placement().observed(engine.machine, processors));
}

}  // namespace

Engine Engine::create(const EngineOptions& options) {
  if (options.threads > kMaxThreads) {
    throw Error(ErrorCode::usage, "threads must be 0 (automatic) to " +
                                      std::to_string(kMaxThreads) + ", got " +
                                      std::to_string(options.threads));
  }
  Engine engine;
  engine.impl_ = std::make_shared<Impl>();
  Impl& impl = *engine.impl_;
  impl.isa = choose_isa(options.isa);
  impl.options = options;
  impl.machine = select_machine(options);
  impl.budget = topology::thread_budget(impl.machine, topology::cgroup_cpu_limit());
  impl.requested = options.threads ? options.threads : impl.budget.threads;
  if (impl.requested > impl.budget.threads) {
    impl.warnings.push_back("running " + plural(impl.requested, "thread") +
                            " although the budget is " + impl.budget.reason);
  }
  topology::Placement placement = topology::Placement::make(
      impl.machine, impl.requested, topology::user_openmp_binding(), level_of(options.level));
  if (!options.pin) {
    placement.pinned = false;
    placement.note = "pinning is switched off";
  }
  if (!placement.note.empty() && options.pin) impl.warnings.push_back(placement.note);
  impl.executor = std::make_unique<Executor>(std::move(placement));
  adopt_user_binding(impl);
  impl.runtime_name = openmp_runtime_name();
  impl.wait_policy = openmp_wait_policy();
  impl.time_before = impl.worker_time();
  check_team(impl);
  return engine;
}

// Of the workers since their threads began.
WorkerTime Engine::Impl::worker_time() const {
  std::vector<topology::ThreadTime> times(executor->workers());
  executor->team([&](const ops::Lane& lane) noexcept {
    if (const auto time = topology::this_thread_time()) times[lane.worker] = *time;
  });
  WorkerTime sum;
  for (const topology::ThreadTime& time : times) {
    sum.running += time.running;
    sum.starved += time.queued;
  }
  return sum;
}

WorkerTime Engine::worker_time() const {
  const WorkerTime now = impl_->worker_time();
  return {now.running - impl_->time_before.running, now.starved - impl_->time_before.starved};
}
NumaPolicy Engine::numa() const noexcept { return impl_->options.numa; }
std::string_view Engine::wait_policy() const noexcept { return impl_->wait_policy; }

unsigned Engine::threads() const noexcept { return impl_->executor->workers(); }
unsigned Engine::requested_threads() const noexcept { return impl_->requested; }
std::string_view Engine::isa() const noexcept { return quant::name_of(impl_->isa); }
std::string_view Engine::openmp_runtime() const noexcept { return impl_->runtime_name; }
const topology::Machine& Engine::machine() const noexcept { return impl_->machine; }
const topology::ThreadBudget& Engine::budget() const noexcept { return impl_->budget; }
const topology::Placement& Engine::placement() const noexcept {
  return impl_->executor->placement();
}
const std::vector<std::string>& Engine::warnings() const noexcept { return impl_->warnings; }

}  // namespace lockstep
