// The line about workers that did not get their processors.
#include "runtime/cli/starvation.h"

#include "support/catch.h"

using namespace lockstep;
using cli::starvation_text;

TEST_CASE("starvation: a line when a tenth of the time is lost, with its reason and a remedy") {
  const cli::Team team{.threads = 4, .budget = 4, .runtime = "libgomp (OpenMP 201511)"};
  CHECK(starvation_text(team, {.running = 9.5, .starved = 0.5}).empty());
  CHECK(starvation_text(team, {.running = 0.2, .starved = 0.2}).empty());  // too short to tell
  CHECK(starvation_text(team, {}).empty());
  const std::string text = starvation_text(team, {.running = 6.0, .starved = 4.0});
  CHECK(text.find("40 % of the time: other processes run on their cores") != std::string::npos);
  CHECK(text.find("GOMP_SPINCOUNT=2000") != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);

  cli::Team other = team;
  other.spin_count_set = true;
  CHECK(starvation_text(other, {.running = 6.0, .starved = 4.0}).find("GOMP") == std::string::npos);
  other = {.threads = 8, .budget = 4, .runtime = "libomp (OpenMP 201511)"};
  const std::string many = starvation_text(other, {.running = 6.0, .starved = 4.0});
  CHECK(many.find("8 threads share what 4 can use; give fewer --threads") != std::string::npos);
  CHECK(many.find("GOMP") == std::string::npos);
}
