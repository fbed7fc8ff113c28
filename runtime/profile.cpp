// Adding up runs.
#include "runtime/profile.h"

#include <algorithm>

namespace lockstep {

double RunTimes::waited() const noexcept {
  double seconds = 0;
  for (const Worker& worker : workers_) {
    for (const StageTimes& stage : worker.stages) seconds += stage.left - stage.done;
  }
  return seconds / static_cast<double>(workers_.size());
}

void RunTimes::clear_nodes() noexcept {
  for (Worker& worker : workers_) std::ranges::fill(worker.node_seconds, 0.0);
}

std::size_t Profile::add_plan(const Plan& plan, std::size_t tokens, std::size_t logits) {
  // The plan of a shape may have been dropped and made again: it is the same one.
  const auto known = std::ranges::find_if(plans_, [&](const PlanProfile& other) {
    return other.tokens == tokens && other.logits == logits;
  });
  if (known != plans_.end()) return static_cast<std::size_t>(known - plans_.begin());
  PlanProfile& profile = plans_.emplace_back();
  profile.tokens = tokens;
  profile.logits = logits;
  profile.workers = plan.workers();
  profile.stages.resize(plan.stages().size());
  for (std::size_t stage = 0; stage < plan.stages().size(); ++stage) {
    for (std::size_t i = plan.stages()[stage].first; i < plan.stages()[stage].last; ++i) {
      const PlannedNode& node = plan.nodes()[i];
      profile.nodes.push_back({std::string(node.op->name()), node.op->detail(), plan.section(node),
                               stage, node.op->weight_bytes(), 0});
    }
  }
  return plans_.size() - 1;
}

void Profile::add_run(std::size_t plan, RunTimes& times) {
  PlanProfile& profile = plans_[plan];
  ++profile.runs;
  const auto workers = static_cast<double>(times.workers());
  for (std::size_t stage = 0; stage < times.stages(); ++stage) {
    double begin = times.stage(0, stage).begin;
    double end = 0;
    double slowest = 0;
    double waited = 0;
    for (std::size_t worker = 0; worker < times.workers(); ++worker) {
      const StageTimes& of = times.stage(worker, stage);
      begin = std::min(begin, of.begin);
      end = std::max(end, of.left);
      slowest = std::max(slowest, of.done - of.begin);
      waited += of.left - of.done;
      if (events_.size() < kMaxEvents) {
        events_.push_back({static_cast<std::uint32_t>(plan), static_cast<std::uint32_t>(stage),
                           static_cast<std::uint32_t>(worker), of});
      }
    }
    PlanProfile::StageTotal& total = profile.stages[stage];
    total.seconds += end - begin;
    total.slowest += slowest;
    total.waited += waited / workers;
  }
  for (std::size_t node = 0; node < profile.nodes.size(); ++node) {
    for (std::size_t worker = 0; worker < times.workers(); ++worker) {
      profile.nodes[node].seconds += times.node_seconds(worker)[node];
    }
  }
  times.clear_nodes();
}

}  // namespace lockstep
