// Where the time of a session goes: by stage and by node, for every shape of step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace lockstep {

// Seconds since some moment, one for all workers.
struct StageTimes {
  double begin = 0;  // the worker entered the stage,
  double done = 0;   // had nothing left to do,
  double left = 0;   // and came through the barrier
};

// What the workers of one run write down. Made once per plan; filling it allocates nothing.
class RunTimes {
 public:
  // `nodes`: how many, or 0 if only stages are to be timed.
  RunTimes(std::size_t workers, std::size_t stages, std::size_t nodes) : workers_(workers) {
    for (Worker& worker : workers_) {
      worker.stages.resize(stages);
      worker.node_seconds.resize(nodes);
    }
  }
  std::size_t workers() const noexcept { return workers_.size(); }
  std::size_t stages() const noexcept { return workers_.front().stages.size(); }
  StageTimes& stage(std::size_t worker, std::size_t stage) noexcept {
    return workers_[worker].stages[stage];
  }
  const StageTimes& stage(std::size_t worker, std::size_t stage) const noexcept {
    return workers_[worker].stages[stage];
  }
  // By node, to be added to; null if nodes are not timed.
  double* node_seconds(std::size_t worker) noexcept {
    std::vector<double>& seconds = workers_[worker].node_seconds;
    return seconds.empty() ? nullptr : seconds.data();
  }
  void clear_nodes() noexcept;
  // Time at the barriers of the last run, mean over the workers.
  double waited() const noexcept;

 private:
  struct alignas(128) Worker {
    std::vector<StageTimes> stages;
    std::vector<double> node_seconds;
  };
  std::vector<Worker> workers_;
};

// All runs of one plan.
struct PlanProfile {
  struct StageTotal {
    double seconds = 0;  // from the first worker's entry to the last one's exit
    double slowest = 0;  // work of the slowest worker
    double waited = 0;   // at the barrier, mean over the workers
  };
  struct NodeTotal {
    std::string op, detail, section;
    std::size_t stage = 0;
    std::uint64_t weight_bytes = 0;  // read per run
    double seconds = 0;              // of all workers together
  };

  std::size_t tokens = 0, logits = 0;
  unsigned workers = 0;
  std::uint64_t runs = 0;
  std::vector<StageTotal> stages;
  std::vector<NodeTotal> nodes;
};

// One stage of one worker in one run, for a timeline.
struct ProfileEvent {
  std::uint32_t plan = 0;  // index of the PlanProfile
  std::uint32_t stage = 0;
  std::uint32_t worker = 0;
  StageTimes times;
};

class Profile {
 public:
  // Events kept for the timeline; what comes later is only summed up.
  static constexpr std::size_t kMaxEvents = 200000;

  std::size_t add_plan(const Plan& plan, std::size_t tokens, std::size_t logits);
  // Adds a run of this plan, and sets the times of the nodes back to 0.
  void add_run(std::size_t plan, RunTimes& times);

  const std::vector<PlanProfile>& plans() const noexcept { return plans_; }
  const std::vector<ProfileEvent>& events() const noexcept { return events_; }

 private:
  std::vector<PlanProfile> plans_;
  std::vector<ProfileEvent> events_;
};

}  // namespace lockstep
