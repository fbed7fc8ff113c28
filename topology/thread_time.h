// What the system gave a thread: time on a processor, and time in the queue for one.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep::topology {

struct ThreadTime {
  double running = 0;  // seconds on a processor
  double queued = 0;   // seconds ready to run while something else had the processor
};

// The two first numbers of a Linux schedstat line, nanoseconds each.
std::optional<ThreadTime> parse_schedstat(std::string_view line) noexcept;

// Of the calling thread since it began; nothing where the system does not tell.
std::optional<ThreadTime> this_thread_time() noexcept;

}  // namespace lockstep::topology
