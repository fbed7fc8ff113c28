// Reads /proc/thread-self/schedstat (Documentation/scheduler/sched-stats.rst of Linux). Without
// streams: this runs in every worker, which allocates nothing.
#include "topology/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>

namespace lockstep::topology {

std::optional<ThreadTime> parse_schedstat(std::string_view line) noexcept {
  std::uint64_t nanoseconds[2] = {};
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::uint64_t& value : nanoseconds) {
    while (at != end && *at == ' ') ++at;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc()) return std::nullopt;
    at = stop;
  }
  return ThreadTime{static_cast<double>(nanoseconds[0]) * 1e-9,
                    static_cast<double>(nanoseconds[1]) * 1e-9};
}

std::optional<ThreadTime> this_thread_time() noexcept {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char text[128];
  const ssize_t count = read(file, text, sizeof text);
  close(file);
  if (count <= 0) return std::nullopt;
  return parse_schedstat({text, static_cast<std::size_t>(count)});
}

}  // namespace lockstep::topology
