// What a session accepts and refuses, cancelling, and the counters it keeps.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/catch.h"
#include "support/model_run.h"
#include "topology/thread_time.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

void check_refused(Session& session, const std::vector<BatchEntry>& batch,
                   const std::string& phrase) {
  try {
    session.evaluate(batch);
    FAIL("accepted; expected: " << phrase);
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::usage);
    INFO(error.what());
    REQUIRE(std::string(error.what()).find(phrase) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a session refuses what its ops would trust, and stays as it was") {
  const Engine engine = make_engine(1);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 16, .slots = 2, .max_batch = 8});
  const auto vocabulary = static_cast<std::int32_t>(model.info().vocabulary);
  check_refused(session, {}, "1 to 8");
  check_refused(session, std::vector<BatchEntry>(9), "got 9");
  check_refused(session, {{vocabulary, 0, 0, true}}, "token");
  check_refused(session, {{-1, 0, 0, true}}, "token -1");
  check_refused(session, {{1, 0, 2, true}}, "slot 2");
  check_refused(session, {{1, 0, -1, true}}, "slot -1");
  check_refused(session, {{1, 16, 0, true}}, "position 16");
  check_refused(session, {{1, 1, 0, true}}, "continues at position 0");
  check_refused(session, {{1, 0, 0, true}, {1, 0, 0, true}}, "continues at position 1");
  REQUIRE(session.length(0) == 0);
  session.evaluate(std::vector<BatchEntry>{{1, 0, 0, true}, {1, 0, 1, false}, {2, 1, 0, true}});
  REQUIRE(session.length(0) == 2);
  REQUIRE(session.length(1) == 1);
  REQUIRE(session.logits(1).size() == model.info().vocabulary);
  REQUIRE_THROWS_AS(session.logits(2), Error);
  REQUIRE_THROWS_AS(session.truncate(0, 3), Error);
  REQUIRE_THROWS_AS(Session(model, {.context = 16, .slots = 0}), Error);
}

TEST_CASE("decode passes five barriers a layer") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, demo_model());
    Session session(model, {});
    session.evaluate(std::vector<BatchEntry>{{1, 0, 0, true}});
    // Five for each layer (qkv, attention, output, gate and up, down) and one for the output
    // matrix; the embedding is replicated and costs none.
    INFO("threads " << threads);
    REQUIRE(session.stats().barriers == 5 * model.info().layers + 1);
  }
}

TEST_CASE("timing the barriers changes nothing but the time that is told") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  const std::vector<BatchEntry> batch{{1, 0, 0, true}, {5, 1, 0, true}};
  Session plain(model, {.context = 8});
  Session timed(model, {.context = 8, .time_barriers = true});
  plain.evaluate(batch);
  timed.evaluate(batch);
  REQUIRE(plain.stats().barrier_seconds == 0);
  REQUIRE(timed.stats().barrier_seconds > 0);
  REQUIRE(plain.stats().barriers == timed.stats().barriers);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    REQUIRE(std::ranges::equal(plain.logits(i), timed.logits(i)));
  }
}

TEST_CASE("the bytes read for a token are the packed matrices") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  session.evaluate(std::vector<BatchEntry>{{1, 0, 0, true}});
  REQUIRE(session.stats().weight_bytes == model.info().decode_bytes);
  session.evaluate(std::vector<BatchEntry>{{1, 1, 0, false}});
  REQUIRE(session.stats().weight_bytes < model.info().decode_bytes);
}

TEST_CASE("cancelling stops within one stage and leaves the session usable") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  const std::vector<std::int32_t> tokens{1, 556, 557, 262, 406};
  const auto expected = hash_logits(feed(session, tokens, 2, true));
  session.truncate(0, 0);
  feed(session, {tokens.data(), 2}, 2, true);
  session.cancel_flag() = true;
  try {
    feed(session, {tokens.data() + 2, 1}, 1, true);
    FAIL("not cancelled");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::interrupted);
  }
  REQUIRE(session.stats().barriers == 1);
  REQUIRE(session.length(0) == 2);
  session.cancel_flag() = false;
  session.truncate(0, 0);
  REQUIRE(hash_logits(feed(session, tokens, 2, true)) == expected);
}

TEST_CASE("steps in one region are the steps one by one") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, demo_model());
    // A prompt in two chunks, then a greedy continuation.
    const std::vector<std::int32_t> prompt{1, 556, 557, 262, 406};
    Session alone(model, {});
    std::vector<std::vector<float>> expected = feed(alone, prompt, 3, false);
    for (int i = 0; i < 20; ++i) {
      const std::int32_t token = argmax(expected.back());
      const auto row = feed(alone, {&token, 1}, 1, true);
      expected.push_back(row[0]);
    }
    Session together(model, {});
    std::vector<std::vector<float>> found;
    std::vector<BatchEntry> batch;
    std::uint64_t barriers = 0;
    int step = 0;
    together.evaluate_each([&]() -> std::span<const BatchEntry> {
      batch.clear();
      if (step > 1) {
        found.emplace_back(together.logits(0).begin(), together.logits(0).end());
        barriers = together.stats().barriers;
      }
      const auto at = static_cast<std::int32_t>(together.length(0));
      if (step == 0) batch = {{1, 0, 0, false}, {556, 1, 0, false}, {557, 2, 0, false}};
      if (step == 1) batch = {{262, 3, 0, false}, {406, 4, 0, true}};
      if (step > 1 && found.size() < expected.size()) {
        batch = {{argmax(found.back()), at, 0, true}};
      }
      ++step;
      return batch;
    });
    CHECK(found == expected);
    CHECK(barriers == 5 * model.info().layers + 1);
    CHECK(together.length(0) == 25);
    CHECK_NOTHROW(together.evaluate_each([] { return std::span<const BatchEntry>(); }));
  }
}

TEST_CASE("what goes wrong in a series of steps ends it and leaves the session usable") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  int calls = 0;
  BatchEntry entry;
  const auto next = [&](int fail_at, auto&& fail) {
    return [&, fail_at]() -> std::span<const BatchEntry> {
      if (calls++ == fail_at) fail();
      entry.token = 5;
      entry.position = static_cast<std::int32_t>(session.length(0));
      entry.logits = true;
      return {&entry, 1};
    };
  };
  // Thrown by the caller's own function, in and out of the region.
  for (const int at : {0, 3}) {
    calls = 0;
    session.truncate(0, 0);
    CHECK_THROWS_WITH(session.evaluate_each(next(at, [] { throw std::runtime_error("mine"); })),
                      "mine");
    CHECK(session.length(0) == static_cast<std::size_t>(at));
  }
  // A batch that is refused.
  calls = 0;
  session.truncate(0, 0);
  CHECK_THROWS_AS(session.evaluate_each([&]() -> std::span<const BatchEntry> {
    entry = {5, calls++ == 2 ? 9 : static_cast<std::int32_t>(session.length(0)), 0, true};
    return {&entry, 1};
  }),
                  Error);
  CHECK(session.length(0) == 2);
  // Cancelled.
  calls = 0;
  session.truncate(0, 0);
  try {
    session.evaluate_each(next(4, [&] { session.cancel_flag() = true; }));
    FAIL("not cancelled");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::interrupted);
  }
  CHECK(session.length(0) == 4);
  CHECK(session.stats().barriers == 1);
  session.cancel_flag() = false;
  const std::vector<std::int32_t> tokens{7, 8};
  session.truncate(0, 0);
  const auto again = hash_logits(feed(session, tokens, 1, true));
  Session fresh(model, {});
  CHECK(hash_logits(feed(fresh, tokens, 1, true)) == again);
}

// After the work the workers wait, and in the end they sleep: what is measured is processor time of
// the process, which other programs cannot add to.
TEST_CASE("an idle engine uses no processor") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  feed(session, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8}, 1, true);
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  if (engine.wait_policy() == "spins") {
    WARN("SKIPPED: the environment asks for endless spinning");
    return;
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  CHECK(used() - before < 0.01);
}

TEST_CASE("an engine knows how long its workers ran") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  const WorkerTime before = engine.worker_time();
  feed(session, std::vector<std::int32_t>(64, 9), 64, true);
  const WorkerTime after = engine.worker_time();
  const bool told = topology::this_thread_time().has_value();
  CHECK((after.running > before.running) == told);
  CHECK(after.starved >= before.starved);
  CHECK(WorkerTime{3.0, 1.0}.starved_share() == Approx(0.25));
  CHECK(WorkerTime{}.starved_share() == 0.0);
}

TEST_CASE("engines refuse absurd options and name the instruction sets") {
  REQUIRE_THROWS_AS(make_engine(100000), Error);
  try {
    make_engine(1, "mmx");
    FAIL("accepted");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::usage);
    REQUIRE(std::string(error.what()).find("scalar") != std::string::npos);
  }
  REQUIRE(make_engine(1, "scalar").isa() == "scalar");
}
