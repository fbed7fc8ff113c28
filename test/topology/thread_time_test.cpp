// What the system tells about a thread's time.
#include "topology/thread_time.h"

#include <fstream>
#include <string>

#include "support/catch.h"

using namespace lockstep::topology;

TEST_CASE("a schedstat line is running time, then queueing time") {
  const auto time = parse_schedstat("1500000000 250000000 42\n");
  REQUIRE(time);
  CHECK(time->running == Approx(1.5));
  CHECK(time->queued == Approx(0.25));
  CHECK_FALSE(parse_schedstat(""));
  CHECK_FALSE(parse_schedstat("12"));
  CHECK_FALSE(parse_schedstat("many 5 1"));
  CHECK_FALSE(parse_schedstat("-1 5 1"));
}

TEST_CASE("a thread that works has run for longer afterwards") {
  const auto before = this_thread_time();
  const bool told = std::ifstream("/proc/thread-self/schedstat").good();
  REQUIRE(before.has_value() == told);
  if (!before) return;
  volatile double x = 1.0;
  for (int i = 0; i < 20000000; ++i) x = x * 1.0000001;
  const auto after = this_thread_time();
  REQUIRE(after);
  CHECK(after->running > before->running);
  CHECK(after->queued >= before->queued);
}
