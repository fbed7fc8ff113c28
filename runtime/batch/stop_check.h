// The long passes over files end at a signal as the job itself does.
#pragma once

#include <atomic>
#include <string>

#include "lockstep/error.h"

namespace lockstep::batch {

// What signals ask for. Null: never.
struct StopFlags {
  const std::atomic<bool>* stop = nullptr;  // no new work
  const std::atomic<bool>* drop = nullptr;  // drop what is under way too

  // Throws Error(interrupted): "stopped by a signal WHEN".
  void check(const char* when) const {
    if (stop && stop->load(std::memory_order_relaxed)) {
      throw Error(ErrorCode::interrupted, std::string("stopped by a signal ") + when);
    }
  }
  bool dropped() const noexcept { return drop && drop->load(std::memory_order_relaxed); }
};

}  // namespace lockstep::batch
