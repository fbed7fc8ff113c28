// The steps that a dry run measures: how many sequences, at which depth, and what they leave.
#include "runtime/bench/step_rates.h"

#include <algorithm>

#include "support/catch.h"
#include "support/model_run.h"

using namespace lockstep;
using namespace lockstep::test;
using bench::measure_step_rates;
using bench::StepRates;

namespace {

struct Fixture {
  Engine engine = make_engine(1);
  Model model = Model::load(engine, demo_model());

  Session session(std::size_t context, std::size_t slots, std::size_t positions = 0,
                  std::size_t max_batch = 48) const {
    SessionOptions options;
    options.context = context;
    options.slots = slots;
    options.max_batch = max_batch;
    options.cache_positions = positions;
    options.share_prefixes = true;
    return Session(model, options);
  }
};

}  // namespace

TEST_CASE("as many sequences are measured as there are, slots allow and the cache holds") {
  const Fixture fixture;
  Session roomy = fixture.session(256, 5);
  CHECK(measure_step_rates(roomy, 60, 3).together == 3);
  CHECK(measure_step_rates(roomy, 60, 90).together == 5);
  for (const std::size_t depth : {1, 31, 32, 33, 244, 5000}) {
    CAPTURE(depth);
    CHECK(measure_step_rates(roomy, depth, 5).together == 5);
  }
  Session tight = fixture.session(256, 5, 384);
  CHECK(measure_step_rates(tight, 200, 5).together == 2);
}

TEST_CASE("what was measured is a rate, and the slots are empty afterwards") {
  const Fixture fixture;
  Session session = fixture.session(128, 4);
  const StepRates rates = measure_step_rates(session, 100, 4);
  CHECK(rates.prompt_tokens_per_s > 0);
  CHECK(rates.answer_tokens_per_s > 0);
  for (std::size_t slot = 0; slot < 4; ++slot) CHECK(session.length(slot) == 0);
  CHECK(session.cache_room().available == session.cache_room().total);
}

TEST_CASE("a context with hardly any room is measured all the same") {
  const Fixture fixture;
  for (const std::size_t context : {1, 2, 3, 12, 13}) {
    CAPTURE(context);
    Session session = fixture.session(context, 2);
    CHECK(measure_step_rates(session, 1, 2).together >= 1);
    CHECK(session.length(0) == 0);
  }
}

TEST_CASE("steps of fewer tokens than a block holds are enough to measure with") {
  const Fixture fixture;
  for (const std::size_t max_batch : {1, 3, 7, 31}) {
    CAPTURE(max_batch);
    const std::size_t slots = std::min<std::size_t>(max_batch, 3);
    Session session = fixture.session(256, slots, 0, max_batch);
    for (const std::size_t depth : {20, 31, 32, 45}) {
      CHECK(measure_step_rates(session, depth, slots).together == slots);
    }
  }
}

TEST_CASE("measuring ends when it is cancelled, with the slots empty") {
  const Fixture fixture;
  Session session = fixture.session(128, 2);
  session.cancel_flag().store(true);
  CHECK_THROWS_AS(measure_step_rates(session, 50, 2), Error);
  CHECK(session.length(0) == 0);
}
