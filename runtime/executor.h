// Running plans with a team of pinned workers: the only place with `omp parallel` and `omp
// barrier`.
//
// One parallel region per run, or per series of runs. Every worker walks the same list of stages
// and computes its part of each node; one barrier ends each stage. The team is what OpenMP grants,
// never what was asked for: every division of work follows the lane, so that any team size gives
// the same bits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ops/split.h"
#include "runtime/plan.h"
#include "runtime/profile.h"
#include "topology/placement.h"

namespace lockstep {

struct RunResult {
  bool cancelled = false;
  std::uint64_t barriers = 0;
};

// What a worker saw when it entered the team for the first time.
struct WorkerReport {
  bool present = false;  // false: OpenMP did not grant this worker
  bool pin_failed = false;
  int processor = -1;  // where it ran, -1 if unknown
};

// A bound plan to run, and where to write down its times, or null.
struct Job {
  const Plan* plan = nullptr;
  RunTimes* times = nullptr;
};

class Executor {
 public:
  // Asks OpenMP for placement.workers.size() threads and remembers the team it got.
  explicit Executor(topology::Placement placement);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Gives the calling thread back the affinity that it had, if this executor narrowed it.
  ~Executor();

  // Workers that were granted when the executor was made.
  unsigned workers() const noexcept { return granted_; }
  const topology::Placement& placement() const noexcept { return placement_; }
  // The same workers on other cores, where somebody else binds them.
  void adopt(topology::Placement observed) { placement_ = std::move(observed); }
  const std::vector<WorkerReport>& reports() const noexcept { return reports_; }

  // Runs a bound plan. Allocation-free. `cancel` may be null; after it is set at most one more
  // stage is computed. `times`, made for this plan, may be null.
  RunResult run(const Plan& plan, const std::atomic<bool>* cancel,
                RunTimes* times = nullptr) noexcept {
    return run_jobs({&plan, times}, cancel, nullptr, nullptr);
  }

  // The same for a series of plans in one parallel region, so that the team stays awake in between.
  // next(result) is called on this thread after each run, while the others wait at a barrier, and
  // gives the Job that follows; one without a plan ends the series, and so does a cancelled run.
  // All plans are made for the same number of workers. Returns the result of the last run.
  template <class Next>
  RunResult run_each(Job first, const std::atomic<bool>* cancel, Next&& next) noexcept {
    using Plain = std::remove_reference_t<Next>;
    return run_jobs(
        first, cancel,
        [](void* context, const RunResult& result) noexcept {
          return Job((*static_cast<Plain*>(context))(result));
        },
        const_cast<void*>(static_cast<const void*>(&next)));
  }

  // Calls work(lane) once in every worker.
  template <class Work>
  void team(Work&& work) noexcept {
    using Plain = std::remove_reference_t<Work>;
    team_call([](void* context,
                 const ops::Lane& lane) noexcept { (*static_cast<Plain*>(context))(lane); },
              const_cast<void*>(static_cast<const void*>(&work)));
  }

  // For work of team(): returns when all workers have called it. All of them must.
  static void barrier() noexcept;

  // Gives the calling thread back the affinity it had before any executor pinned it, so that the
  // machine can be detected anew.
  static void release_this_thread() noexcept;

 private:
  using TeamWork = void (*)(void* context, const ops::Lane& lane) noexcept;
  void team_call(TeamWork work, void* context) noexcept;
  using NextJob = Job (*)(void* context, const RunResult& result) noexcept;
  RunResult run_jobs(Job first, const std::atomic<bool>* cancel, NextJob next,
                     void* context) noexcept;
  void begin_run() noexcept;
  RunResult run_stages(const Job& job, const ops::Lane& lane,
                       const std::atomic<bool>* cancel) noexcept;
  ops::Lane enter() noexcept;
  void settle_this_thread(unsigned worker) noexcept;

  topology::Placement placement_;
  std::vector<unsigned> original_mask_;
  std::vector<WorkerReport> reports_;
  std::uint64_t id_ = 0;
  unsigned granted_ = 1;
  alignas(64) std::atomic<std::uint64_t> stop_after_{0};
  Job job_;           // of the run in progress
  RunResult result_;  // of the last run
  // By worker; for the stages with even and with odd numbers.
  std::array<std::vector<ChunkCounter>, 2> chunks_;
};

}  // namespace lockstep
