// What a session accepts and refuses, cancelling, and the counters it keeps.
#include <algorithm>

#include "support/catch.h"
#include "support/model_run.h"

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
