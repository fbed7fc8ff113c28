// SIGINT and SIGTERM during a job: the first asks for a stop after the current step, the second
// drops that step as well.
#pragma once

#include <atomic>

namespace lockstep::cli {

class StopSignals {
 public:
  // Installs the handlers until destruction. `cancel` is raised by the second signal. One at a
  // time.
  explicit StopSignals(std::atomic<bool>& cancel);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  const std::atomic<bool>& stop() const noexcept;
};

}  // namespace lockstep::cli
