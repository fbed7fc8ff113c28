// The scheduler: every sequence gets exactly the tokens that it would get alone, whatever shares
// its steps.
#include <map>
#include <string>
#include <vector>

#include "runtime/batch/scheduler.h"
#include "support/catch.h"
#include "test/runtime/fake_step_model.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::FakeStepModel;

namespace {

Sequence sequence(const std::string& prompt, std::size_t max_tokens,
                  std::vector<std::string> stop = {}) {
  Sequence made;
  for (const char c : prompt) made.prompt.push_back(static_cast<unsigned char>(c));
  made.max_tokens = max_tokens;
  made.stop = std::move(stop);
  return made;
}

// What the fake model says to `prompt`, by its definition.
Finished expected(const std::string& prompt, std::size_t max_tokens) {
  std::vector<TokenId> history = sequence(prompt, 1).prompt;
  Finished result;
  result.prompt_tokens = history.size();
  result.reason = FinishReason::length;
  while (result.output_tokens < max_tokens) {
    const TokenId token = FakeStepModel::next(history);
    ++result.output_tokens;
    if (token == FakeStepModel::kEnd) {
      result.reason = FinishReason::stop;
      break;
    }
    result.text += static_cast<char>(token);
    history.push_back(token);
  }
  return result;
}

std::vector<Finished> run_one(Sequence one, std::size_t context = 100, std::size_t max_batch = 8) {
  FakeStepModel model(context, 1, max_batch);
  Scheduler scheduler(model);
  scheduler.add(std::move(one));
  std::vector<Finished> finished;
  StepCounts counts;
  while (!scheduler.idle()) REQUIRE(scheduler.step(finished, counts));
  return finished;
}

// All prompts through the scheduler; results in their order.
std::vector<Finished> run_all(Scheduler& scheduler, const std::vector<std::string>& prompts,
                              std::size_t max_tokens, StepCounts& counts,
                              std::size_t context = 64) {
  std::map<std::uint64_t, std::size_t> by_id;
  std::vector<Finished> results(prompts.size());
  std::vector<Finished> finished;
  std::size_t next = 0;
  while (next < prompts.size() || !scheduler.idle()) {
    while (next < prompts.size() && scheduler.wants_more()) {
      const std::size_t room = context - prompts[next].size();
      by_id[scheduler.add(sequence(prompts[next], std::min(room, max_tokens)))] = next;
      ++next;
    }
    finished.clear();
    REQUIRE(scheduler.step(finished, counts));
    for (Finished& one : finished) results.at(by_id.at(one.id)) = one;
  }
  return results;
}

}  // namespace

TEST_CASE("many sequences through few slots give what each gives alone") {
  const auto slots = GENERATE(as<std::size_t>{}, 1, 2, 3, 7, 32);
  const auto max_batch = GENERATE(as<std::size_t>{}, 32, 33, 50, 512);
  FakeStepModel model(64, slots, max_batch);
  Scheduler scheduler(model);
  std::vector<std::string> prompts;
  for (std::size_t i = 0; i < 40; ++i) {
    prompts.push_back(std::string(1 + i * 7 % 45, static_cast<char>('a' + i % 26)) +
                      std::to_string(i));
  }
  StepCounts counts;
  const std::vector<Finished> results = run_all(scheduler, prompts, 12, counts);
  std::size_t prompt_tokens = 0, output_tokens = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Finished want = expected(prompts[i], 12);
    CAPTURE(i, slots, max_batch);
    CHECK(results[i].text == want.text);
    CHECK(results[i].reason == want.reason);
    CHECK(results[i].output_tokens == want.output_tokens);
    CHECK(results[i].prompt_tokens == prompts[i].size());
    prompt_tokens += want.prompt_tokens;
    output_tokens += want.output_tokens;
  }
  CHECK(counts.prompt_tokens + counts.cached_tokens == prompt_tokens);
  CHECK(counts.output_tokens == output_tokens);
  CHECK(model.largest_batch <= max_batch);
}

TEST_CASE("prompts are evaluated in chunks beside sequences that generate") {
  FakeStepModel model(200, 2, 4);
  Scheduler scheduler(model);
  scheduler.add(sequence("Eabcdefgh|", 50));
  std::vector<Finished> finished;
  StepCounts counts;
  REQUIRE(scheduler.step(finished, counts));
  CHECK(counts.prompt_tokens == 4);
  CHECK(counts.output_tokens == 0);
  scheduler.add(sequence("Exy|", 50));
  REQUIRE(scheduler.step(finished, counts));  // the first prompt still has the whole batch
  CHECK(counts.prompt_tokens == 8);
  REQUIRE(scheduler.step(finished, counts));  // its last two tokens, and two of the second
  CHECK(counts.prompt_tokens == 12);
  CHECK(counts.output_tokens == 1);
  REQUIRE(scheduler.step(finished, counts));  // one generates beside the rest of the second prompt
  CHECK(counts.prompt_tokens == 14);
  CHECK(counts.output_tokens == 3);
}

TEST_CASE("an answer ends by its end token, its length or a stop string") {
  std::vector<Finished> done = run_one(sequence("Ehello|", 50));
  REQUIRE(done.size() == 1);
  CHECK(done[0].text == "hello");
  CHECK(done[0].reason == FinishReason::stop);
  CHECK(done[0].output_tokens == 6);

  done = run_one(sequence("Ehello|", 3));
  CHECK(done.at(0).text == "hel");
  CHECK(done[0].reason == FinishReason::length);

  done = run_one(sequence("Ehello there|", 50, {"there", "lo t"}));
  CHECK(done.at(0).text == "hel");
  CHECK(done[0].reason == FinishReason::stop);
  CHECK(done[0].output_tokens == 7);

  done = run_one(sequence("Ehello|", 50, {"helloo", "x"}));
  CHECK(done.at(0).text == "hello");

  done = run_one(sequence("Ehello|", 5, {"o"}));  // stop string and length at the same token
  CHECK(done.at(0).text == "hell");
  CHECK(done[0].reason == FinishReason::stop);
}

TEST_CASE("prompt and answer may fill the context to its last position") {
  const std::vector<Finished> done = run_one(sequence("Uabc", 6), 10);
  CHECK(done.at(0).reason == FinishReason::length);
  CHECK(done[0].output_tokens == 6);
}

TEST_CASE("NaN logits end their own sequence only") {
  FakeStepModel model(100, 2, 16);
  Scheduler scheduler(model);
  const std::uint64_t bad = scheduler.add(sequence("Nope", 9));
  const std::uint64_t good = scheduler.add(sequence("Efine|", 9));
  std::vector<Finished> finished;
  StepCounts counts;
  while (!scheduler.idle()) REQUIRE(scheduler.step(finished, counts));
  REQUIRE(finished.size() == 2);
  CHECK(finished[0].id == bad);
  CHECK(finished[0].reason == FinishReason::non_finite);
  CHECK(finished[0].output_tokens == 0);
  CHECK(finished[1].id == good);
  CHECK(finished[1].text == "fine");
}

TEST_CASE("a cancelled step finishes nothing") {
  FakeStepModel model(100, 1, 16);
  model.cancel_at_step = 2;
  Scheduler scheduler(model);
  scheduler.add(sequence("Efine|", 9));
  std::vector<Finished> finished;
  StepCounts counts;
  CHECK(scheduler.step(finished, counts));
  CHECK_FALSE(scheduler.step(finished, counts));
  CHECK(finished.empty());
}

TEST_CASE("more slots than a batch has entries are refused") {
  FakeStepModel model(100, 5, 4);
  CHECK_THROWS_AS(Scheduler(model), Error);
}

TEST_CASE("sequences that begin alike are computed once, and answer as if they were alone") {
  const std::string common = "You are a helpful machine. ";  // three blocks and a bit
  std::vector<std::string> prompts;
  for (int i = 0; i < 30; ++i) prompts.push_back(common + std::to_string(i * i));
  prompts.push_back(prompts[3]);  // all of it but the last token is there
  const auto slots = GENERATE(as<std::size_t>{}, 1, 4, 31);
  FakeStepModel model(64, slots, 200);
  Scheduler scheduler(model);
  StepCounts counts;
  const std::vector<Finished> results = run_all(scheduler, prompts, 9, counts);
  std::size_t prompt_tokens = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Finished want = expected(prompts[i], 9);
    CAPTURE(i, slots);
    CHECK(results[i].text == want.text);
    CHECK(results[i].output_tokens == want.output_tokens);
    prompt_tokens += prompts[i].size();
  }
  CHECK(counts.prompt_tokens + counts.cached_tokens == prompt_tokens);
  // All share the whole blocks of the beginning, even those of the first step.
  CHECK(counts.cached_tokens >= (prompts.size() - 1) * (common.size() / 8 * 8));
  CHECK(counts.preemptions == 0);
}

TEST_CASE("all slots are used as long as the cache has room, however short the context is") {
  // Prompts that nearly fill the context, and a cache with just enough room for every slot.
  constexpr std::size_t kContext = 40, kSlots = 12;
  FakeStepModel model(kContext, kSlots, 512);
  Scheduler scheduler(model);
  for (std::size_t i = 0; i < kSlots; ++i) {
    scheduler.add(sequence("E" + std::string(30, static_cast<char>('a' + i)), 8));
  }
  std::vector<Finished> finished;
  StepCounts counts;
  REQUIRE(scheduler.step(finished, counts));
  CHECK(counts.prompt_tokens + counts.cached_tokens == kSlots * 31);
  CHECK(counts.output_tokens == kSlots);
  CHECK(counts.preemptions == 0);
}

TEST_CASE("a cache that is too small for all makes some wait, and changes no answer") {
  const auto blocks = GENERATE(as<std::size_t>{}, 10, 11, 14, 20, 33);
  const auto max_batch = GENERATE(as<std::size_t>{}, 8, 13, 200);
  FakeStepModel model(64, 8, max_batch, blocks);
  Scheduler scheduler(model);
  std::vector<std::string> prompts;
  for (std::size_t i = 0; i < 40; ++i) {
    prompts.push_back(std::string(i % 3 == 0 ? "a common beginning, " : "") +
                      std::string(1 + i * 11 % 30, static_cast<char>('a' + i % 5)) +
                      std::to_string(i % 7));
  }
  StepCounts counts;
  const std::vector<Finished> results = run_all(scheduler, prompts, 30, counts);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Finished want = expected(prompts[i], std::min<std::size_t>(30, 64 - prompts[i].size()));
    CAPTURE(i, blocks, max_batch);
    CHECK(results[i].text == want.text);
    CHECK(results[i].reason == want.reason);
    CHECK(results[i].output_tokens == want.output_tokens);
  }
  if (blocks == 10) CHECK(counts.preemptions > 0);
  if (blocks == 10) CHECK(counts.recomputed_tokens > 0);
}
