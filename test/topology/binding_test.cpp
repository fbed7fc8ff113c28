// Pinning on the machine that runs the test: each thread of its own affinity mask in turn.
#include "topology/binding.h"

#include <algorithm>
#include <thread>

#include "support/catch.h"

namespace {

using lockstep::topology::affinity_mask;
using lockstep::topology::current_processor;
using lockstep::topology::pin_this_thread;
using lockstep::topology::set_affinity_mask;

}  // namespace

TEST_CASE("a pinned thread runs where it was put, and others stay free") {
  const std::vector<unsigned> before = affinity_mask();
  REQUIRE_FALSE(before.empty());
  CHECK(std::is_sorted(before.begin(), before.end()));
  for (const unsigned processor : before) {
    CAPTURE(processor);
    bool pinned = false;
    std::optional<unsigned> seen;
    std::vector<unsigned> mask;
    std::thread([&] {
      pinned = pin_this_thread(processor);
      seen = current_processor();
      mask = affinity_mask();
    }).join();
    CHECK(pinned);
    CHECK(seen == processor);
    CHECK(mask == std::vector<unsigned>{processor});
  }
  CHECK(affinity_mask() == before);
}

TEST_CASE("a mask can be set and set back") {
  const std::vector<unsigned> before = affinity_mask();
  REQUIRE(set_affinity_mask({before.back()}));
  CHECK(affinity_mask() == std::vector<unsigned>{before.back()});
  REQUIRE(set_affinity_mask(before));
  CHECK(affinity_mask() == before);
}

TEST_CASE("processors that do not exist are refused and change nothing") {
  const std::vector<unsigned> before = affinity_mask();
  CHECK_FALSE(pin_this_thread(4'000'000'000u));
  CHECK_FALSE(pin_this_thread((1u << 18) - 1));
  CHECK_FALSE(set_affinity_mask({}));
  CHECK_FALSE(set_affinity_mask({4'000'000'000u}));
  CHECK_FALSE(set_affinity_mask({(1u << 18) - 1}));
  CHECK(affinity_mask() == before);
}
