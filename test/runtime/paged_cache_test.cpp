// Sequences whose keys and values lie in blocks anywhere, shared, copied or computed again: the
// logits are those of a slot with a cache of its own, bit for bit.
#include <random>

#include "support/catch.h"
#include "support/model_run.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Tokens = std::vector<std::int32_t>;
using Rows = std::vector<std::vector<float>>;

Tokens some_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tokens tokens{1};
  while (tokens.size() < count) tokens.push_back(static_cast<std::int32_t>(20 + random() % 900));
  return tokens;
}

// Logits of every token from `first` on, as a slot gives them that is alone and evaluates all.
Rows expected_rows(const Model& model, KvType type, const Tokens& tokens, std::size_t first) {
  Session alone(model, {.context = 256, .kv_type = type});
  Rows rows = feed(alone, tokens, 64, true);
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first));
  return rows;
}

Tokens joined(const Tokens& a, std::size_t count, const Tokens& b) {
  Tokens tokens(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count));
  tokens.insert(tokens.end(), b.begin(), b.end());
  return tokens;
}

std::span<const std::int32_t> from(const Tokens& tokens, std::size_t first) {
  return std::span(tokens).subspan(first);
}

}  // namespace

TEST_CASE("a slot goes on from what another one computed, with the same bits") {
  const auto threads = GENERATE(1u, 2u, 3u);
  const auto type = GENERATE(KvType::f32, KvType::f16, KvType::q8_0);
  const Engine engine = make_engine(threads);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 256, .slots = 3, .kv_type = type, .share_prefixes = true});
  const Tokens first = some_tokens(150, 1);
  feed(session, first, 50, false, 0);
  // Whole blocks, a part of one, and all but the last token; beside the first slot, and after it.
  for (const std::size_t shared : {std::size_t{96}, std::size_t{77}, std::size_t{128}}) {
    const Tokens tokens = joined(first, shared, some_tokens(40, 7));
    CAPTURE(threads, static_cast<int>(type), shared);
    CHECK(session.adopt(1, tokens) == shared);
    CHECK(session.length(1) == shared);
    CHECK(feed(session, from(tokens, shared), 17, true, 1) ==
          expected_rows(model, type, tokens, shared));
    session.truncate(1, 0);
  }
  session.truncate(0, 0);
  CHECK(session.adopt(2, Tokens(first.begin(), first.begin() + 128)) == 127);
  CHECK(feed(session, std::span(first).subspan(127, 1), 1, true, 2) ==
        expected_rows(model, type, Tokens(first.begin(), first.begin() + 128), 127));
  CHECK(session.cache_room().kept > 0);
}

TEST_CASE("slots share a beginning within the step that computes it") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 256, .slots = 2, .share_prefixes = true});
  const Tokens first = some_tokens(70, 3);
  const Tokens second = joined(first, 64, some_tokens(9, 4));
  REQUIRE(session.reserve(0, first));
  CHECK(session.adopt(1, second) == 64);
  REQUIRE(session.reserve(1, from(second, 64)));
  std::vector<BatchEntry> batch;
  for (std::size_t i = 0; i < first.size(); ++i) {
    batch.push_back({first[i], static_cast<std::int32_t>(i), 0, i + 1 == first.size()});
  }
  for (std::size_t i = 64; i < second.size(); ++i) {
    batch.push_back({second[i], static_cast<std::int32_t>(i), 1, true});
  }
  session.evaluate(batch);
  const Rows expected = expected_rows(model, KvType::f32, second, 64);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(std::ranges::equal(session.logits(1 + i), expected[i]));
  }
  CHECK(
      std::ranges::equal(session.logits(0), expected_rows(model, KvType::f32, first, 69).front()));
}

TEST_CASE("a cancelled step takes back what was booked and adopted for it") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 256, .slots = 2, .share_prefixes = true});
  const Tokens tokens = some_tokens(100, 5);
  feed(session, std::span(tokens).first(45), 45, false, 0);
  REQUIRE(session.reserve(0, from(tokens, 45)));
  CHECK(session.adopt(1, tokens) == 96);
  REQUIRE(session.reserve(1, from(tokens, 96)));
  std::vector<BatchEntry> batch;
  for (std::size_t i = 45; i < tokens.size(); ++i) {
    batch.push_back({tokens[i], static_cast<std::int32_t>(i), 0, true});
  }
  for (std::size_t i = 96; i < tokens.size(); ++i) {
    batch.push_back({tokens[i], static_cast<std::int32_t>(i), 1, true});
  }
  session.cancel_flag() = true;
  CHECK_THROWS_AS(session.evaluate(batch), Error);
  session.cancel_flag() = false;
  CHECK(session.length(0) == 45);
  CHECK(session.length(1) == 0);
  CHECK(session.adopt(1, tokens) == 32);  // nothing that was not computed
  const Rows expected = expected_rows(model, KvType::f32, tokens, 32);
  CHECK(feed(session, from(tokens, 32), 23, true, 1) == expected);
  CHECK(feed(session, from(tokens, 45), 64, true, 0) ==
        Rows(expected.begin() + 13, expected.end()));
}

TEST_CASE("a cache for fewer positions than the slots can have is used up, and told so") {
  const Engine engine = make_engine(1);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 128, .slots = 4, .cache_positions = 200});
  CHECK(session.cache_room().total == 192);
  CHECK(session.cache_room().block == 32);
  CHECK(session.room(3) == 128);
  const Tokens tokens = some_tokens(128, 6);
  feed(session, tokens, 64, false, 0);
  CHECK(session.room(1) == 64);
  feed(session, std::span(tokens).first(40), 40, false, 1);
  CHECK(session.room(2) == 0);
  CHECK_FALSE(session.reserve(2, std::span(tokens).first(1)));
  try {
    // The first entries would fit; nothing is kept of them.
    session.evaluate(std::vector<BatchEntry>{{5, 40, 1, true}, {1, 0, 2, true}});
    FAIL("evaluated without room");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::no_resource);
    CHECK(std::string(error.what()).find("192 positions") != std::string::npos);
  }
  CHECK(session.length(1) == 40);
  CHECK(session.room(1) == 24);
  session.truncate(0, 0);
  CHECK(feed(session, std::span(tokens).first(60), 7, true, 2) ==
        expected_rows(model, KvType::f32, Tokens(tokens.begin(), tokens.begin() + 60), 0));
  CHECK_THROWS_AS(Session(model, {.context = 128, .slots = 4, .cache_positions = 127}), Error);
  CHECK_NOTHROW(Session(model, {.context = 128, .slots = 4, .cache_positions = 1 << 20}));
}

TEST_CASE("what was booked must be what is evaluated") {
  const Engine engine = make_engine(1);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 64, .slots = 2, .share_prefixes = true});
  const auto refused = [&](const std::vector<BatchEntry>& batch, const std::string& phrase) {
    try {
      session.evaluate(batch);
      FAIL("accepted: " << phrase);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      INFO(error.what());
      CHECK(std::string(error.what()).find(phrase) != std::string::npos);
    }
  };
  REQUIRE(session.reserve(0, Tokens{1, 556}));
  refused({{1, 0, 0, true}, {557, 1, 0, true}}, "booked for token 556");
  refused({{1, 0, 0, true}}, "booked up to position 2, the batch ends at 1");
  refused({{1, 0, 1, true}}, "slot 0 was booked up to position 2");
  session.evaluate(std::vector<BatchEntry>{{1, 0, 0, true}, {556, 1, 0, true}, {557, 2, 0, true}});
  CHECK(session.length(0) == 3);
  CHECK_THROWS_AS(session.adopt(0, Tokens{1, 556, 557}), Error);
  CHECK_THROWS_AS(session.reserve(0, Tokens(62, 5)), Error);
  // Booked and given up again.
  REQUIRE(session.reserve(1, Tokens{1, 2, 3}));
  session.truncate(1, 0);
  session.evaluate(std::vector<BatchEntry>{{262, 3, 0, true}});
  CHECK(session.length(0) == 4);
}

TEST_CASE("forgetting a part of what is shared and writing anew leaves the others alone") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 256, .slots = 2, .share_prefixes = true});
  const Tokens first = some_tokens(96, 8);
  feed(session, first, 96, false, 0);
  const Tokens second = joined(first, 95, {700});
  CHECK(session.adopt(1, second) == 95);
  session.truncate(0, 70);
  const Tokens changed = joined(first, 70, some_tokens(30, 9));
  CHECK(feed(session, from(changed, 70), 30, true, 0) ==
        expected_rows(model, KvType::f32, changed, 70));
  CHECK(feed(session, from(second, 95), 1, true, 1) ==
        expected_rows(model, KvType::f32, second, 95));
}
