// SIGINT, SIGTERM and SIGUSR1 (which Slurm can send some time before it ends a job): the first asks
// for a stop after the current step; a second one, or the end of a period of grace, drops that step
// as well.
#pragma once

#include <atomic>
#include <ctime>

namespace lockstep::cli {

class StopSignals {
 public:
  // Installs the handlers until destruction. `cancel` is raised by the second signal; there is no
  // time limit. One StopSignals at a time.
  explicit StopSignals(std::atomic<bool>& cancel);
  // For a job that begins with long preparations, such as loading a model. As long as no
  // CancelOnDrop is alive there is nothing to lose: the second signal, or the end of
  // `grace_seconds` after the first, ends the process with exit code 75 on the spot.
  explicit StopSignals(double grace_seconds);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  const std::atomic<bool>& stop() const noexcept;
  // A second signal came, or time is up.
  const std::atomic<bool>& drop() const noexcept;

 private:
  bool has_timer_ = false;
  timer_t timer_ = {};
};

// From its construction on the process is not ended on the spot any more: instead `cancel` is
// raised, until destruction. To be made once, before the first row is written.
class CancelOnDrop {
 public:
  explicit CancelOnDrop(std::atomic<bool>& cancel);
  CancelOnDrop(const CancelOnDrop&) = delete;
  CancelOnDrop& operator=(const CancelOnDrop&) = delete;
  ~CancelOnDrop();
};

}  // namespace lockstep::cli
