// The parallel region. Everything inside it is noexcept and allocation-free once the first team has
// settled.
#include "runtime/executor.h"

#include <omp.h>

#include <limits>

#include "topology/binding.h"

namespace lockstep {
namespace {

// Which executor settled this thread last, and the affinity the thread had before the first one
// did.
thread_local std::uint64_t settled_by = 0;
thread_local std::vector<unsigned> mask_before;

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Executor::Executor(topology::Placement placement)
    : placement_(std::move(placement)),
      original_mask_(topology::affinity_mask()),
      reports_(placement_.workers.size()),
      id_(next_id()),
      granted_(static_cast<unsigned>(placement_.workers.size())) {
  std::atomic<unsigned> granted{0};
  team([&](const ops::Lane& lane) {
    granted.store(lane.workers);
    WorkerReport& report = reports_[lane.worker];
    report.present = true;
    const auto processor = topology::current_processor();
    report.processor = processor ? static_cast<int>(*processor) : -1;
  });
  granted_ = granted.load();
  for (auto& counters : chunks_) counters = std::vector<ChunkCounter>(granted_);
}

Executor::~Executor() {
  if (settled_by == id_) release_this_thread();
}

void Executor::release_this_thread() noexcept {
  if (settled_by == 0) return;
  if (!mask_before.empty()) topology::set_affinity_mask(mask_before);
  settled_by = 0;
}

// Threads of the OpenMP pool outlive executors and may still be pinned for an earlier one.
void Executor::settle_this_thread(unsigned worker) noexcept {
  if (settled_by == id_) return;
  if (settled_by == 0) mask_before = original_mask_;
  if (placement_.pinned) {
    reports_[worker].pin_failed = !topology::pin_this_thread(placement_.workers[worker].processor);
  } else if (placement_.oversubscribed) {
    topology::set_affinity_mask(original_mask_);
  }
  settled_by = id_;
}

ops::Lane Executor::enter() noexcept {
  const auto worker = static_cast<unsigned>(omp_get_thread_num());
  settle_this_thread(worker);
  return {worker, static_cast<unsigned>(omp_get_num_threads()), placement_.workers[worker].node,
          placement_.nodes};
}

void Executor::team_call(TeamWork work, void* context) noexcept {
#pragma omp parallel num_threads(static_cast <int>(granted_))
  work(context, enter());
}

void Executor::barrier() noexcept {
#pragma omp barrier
}

void Executor::begin_run() noexcept {
  for (ChunkCounter& counter : chunks_[0]) counter.taken.store(0, std::memory_order_relaxed);
  // Holds the stage after which all leave. A plain flag would not do: a fast worker 0 could raise
  // it for the next stage while a slow worker has not yet looked at it for this one, and leave
  // alone.
  stop_after_.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
}

// One run. Behind the barrier of the last stage neither the plan nor the times are touched but for
// the moment of leaving: worker 0 may be at the next run already, and the plan may be gone.
RunResult Executor::run_stages(const Job& job, const ops::Lane& lane,
                               const std::atomic<bool>* cancel) noexcept {
  const std::vector<Stage>& stages = job.plan->stages();
  const std::size_t count = stages.size();
  RunTimes* const times = job.times;
  for (std::size_t stage = 0; stage < count; ++stage) {
    // The counters of the next stage were last used in the one before this, which all have left.
    chunks_[(stage + 1) % 2][lane.worker].taken.store(0, std::memory_order_relaxed);
    StageTimes* const timed = times ? &times->stage(lane.worker, stage) : nullptr;
    if (timed) timed->begin = omp_get_wtime();
    job.plan->run_stage(stages[stage], lane, chunks_[stage % 2],
                        times ? times->node_seconds(lane.worker) : nullptr);
    if (lane.worker == 0 && cancel && cancel->load(std::memory_order_relaxed)) {
      stop_after_.store(stage, std::memory_order_relaxed);
    }
    if (timed) timed->done = omp_get_wtime();
#pragma omp barrier
    if (timed) timed->left = omp_get_wtime();
    if (stop_after_.load(std::memory_order_relaxed) <= stage) return {true, stage + 1};
  }
  return {false, count};
}

RunResult Executor::run_jobs(Job first, const std::atomic<bool>* cancel, NextJob next,
                             void* context) noexcept {
  begin_run();
#pragma omp parallel num_threads(static_cast <int>(first.plan->workers()))
  {
    const ops::Lane lane = enter();
    Job job = first;
    while (job.plan != nullptr) {
      const RunResult result = run_stages(job, lane, cancel);
      if (lane.worker == 0) result_ = result;
      if (result.cancelled || next == nullptr) break;
      if (job.times != nullptr) {
#pragma omp barrier  // all moments of leaving are written down
      }
      if (lane.worker == 0) {
        job_ = next(context, result_);
        begin_run();  // nobody looks at these before the barrier
      }
#pragma omp barrier
      job = job_;  // changes after the next run, which has a barrier at least
    }
  }
  return result_;
}

}  // namespace lockstep
