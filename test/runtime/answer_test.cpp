// One answer in the making: where it ends, what its text is, which of its tokens have
// log-probabilities.
#include "runtime/batch/answer.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "test/runtime/word_model.h"

namespace {

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::WordModel;
using Tokens = std::vector<TokenId>;

AnswerRules rules(std::size_t max_tokens = 100) {
  AnswerRules made;
  made.max_tokens = max_tokens;
  return made;
}

// Feeds logits that prefer these tokens, one after another, until the answer ends.
Finished answered(const AnswerRules& how, const Tokens& preferred, const Tokens& prompt = {}) {
  const WordModel model;
  Answer answer(how, prompt, model);
  for (const TokenId token : preferred) {
    const std::size_t before = answer.tokens().size();
    const std::optional<FinishReason> reason = answer.take(WordModel::logits_for(token), model);
    CHECK(answer.tokens().size() == before + 1);
    CHECK(answer.last() == answer.tokens().back());
    if (reason) return answer.finish(*reason);
  }
  FAIL("the answer did not end");
  return {};
}

Tokens tokens_of(const std::vector<TokenLogprob>& logprobs) {
  Tokens tokens;
  for (const TokenLogprob& one : logprobs) tokens.push_back(one.token);
  return tokens;
}

constexpr TokenId kHel = WordModel::kHel, kLoStop = WordModel::kLoStop, kThere = WordModel::kThere,
                  kFirstHalf = WordModel::kFirstHalf, kSecondHalf = WordModel::kSecondHalf,
                  kEnd = WordModel::kEnd, kTool = WordModel::kTool;

}  // namespace

TEST_CASE("an answer ends with an end token, which is generated but has no text") {
  Finished done = answered(rules(), {kHel, kThere, kEnd});
  CHECK(done.reason == FinishReason::stop);
  CHECK(done.text == "hel there");
  CHECK(done.output_tokens == 3);
  CHECK_FALSE(done.logprobs.has_value());
  CHECK_FALSE(done.shows_ids);
  CHECK(done.output_ids.empty());

  done = answered(rules(2), {kHel, kThere, kEnd});
  CHECK(done.reason == FinishReason::length);
  CHECK(done.text == "hel there");
}

TEST_CASE("an answer that ignores end tokens goes on to its limit") {
  AnswerRules how = rules(4);
  how.ignore_eos = true;
  how.sampling.min_tokens = 3;  // bans nothing then
  how.sampling.logprobs = 0;
  const Finished done = answered(how, {kHel, kEnd, kEnd, kThere, kHel});
  CHECK(done.reason == FinishReason::length);
  CHECK(done.text == "hel there");
  CHECK(done.output_tokens == 4);
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kHel, kEnd, kEnd, kThere});
}

TEST_CASE("no end token and no stop string before min_tokens") {
  AnswerRules how = rules();
  how.sampling.min_tokens = 3;
  how.stop = {"hel"};
  // The first two are what is left: hel (0) is the likeliest after the banned end token.
  const Finished done = answered(how, {kEnd, kEnd, kEnd, kEnd});
  CHECK(done.reason == FinishReason::stop);
  CHECK(done.text == "helhel");
  CHECK(done.output_tokens == 3);
}

TEST_CASE("a stop string that was complete before min_tokens does not count later") {
  AnswerRules how = rules();
  how.sampling.min_tokens = 2;
  how.stop = {"el", "a stop string much longer than the text"};
  const Finished done = answered(how, {kHel, kThere, kThere, kHel});
  CHECK(done.text == "hel there thereh");
}

TEST_CASE("a stop string cuts the text, and tokens that lose bytes lose their log-probabilities") {
  AnswerRules how = rules();
  how.sampling.logprobs = 2;
  how.stop = {"stop"};
  Finished done = answered(how, {kThere, kHel, kLoStop});
  CHECK(done.text == " therehello ");
  CHECK(done.reason == FinishReason::stop);
  CHECK(done.output_tokens == 3);
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kThere, kHel});
  CHECK(done.logprobs->top.size() == 4);
  CHECK(done.logprobs->tops_of(1).size() == 2);
  CHECK(done.logprobs->tops_of(1)[0].token == kHel);

  how.stop = {"ello s", "rehel"};  // across tokens, and the earliest of two
  done = answered(how, {kThere, kHel, kLoStop});
  CHECK(done.text == " the");
  CHECK(done.logprobs->tokens.empty());
  CHECK(done.logprobs->top.empty());

  how.stop = {"ello s"};
  done = answered(how, {kThere, kHel, kTool, kLoStop});
  CHECK(done.text == " thereh");
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kThere});

  how.stop = {"lo"};  // at the end of a token: the one before stays whole, a token without text too
  done = answered(how, {kThere, kHel, kTool, kLoStop});
  CHECK(done.text == " therehel");
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kThere, kHel, kTool});
}

TEST_CASE("a stop string may stay in the text") {
  AnswerRules how = rules();
  how.include_stop = true;
  how.sampling.logprobs = 0;
  how.stop = {"lo st", "lo s"};  // the shorter one was complete first
  Finished done = answered(how, {kHel, kLoStop});
  CHECK(done.text == "hello s");
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kHel});
  how.stop = {"stop"};
  done = answered(how, {kHel, kLoStop});
  CHECK(done.text == "hello stop");
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kHel, kLoStop});
}

TEST_CASE("log-probabilities belong to the tokens of the text, in order") {
  AnswerRules how = rules();
  how.sampling.logprobs = 3;
  const Finished done = answered(how, {kFirstHalf, kSecondHalf, kTool, kHel, kEnd});
  CHECK(tokens_of(done.logprobs->tokens) == Tokens{kFirstHalf, kSecondHalf, kTool, kHel});
  CHECK(done.logprobs->tops_each == 3);
  CHECK(done.logprobs->top.size() == 12);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::span<const TokenLogprob> tops = done.logprobs->tops_of(i);
    CHECK(tops[0] == done.logprobs->tokens[i]);
    CHECK(tops[0].logprob > tops[1].logprob);
    CHECK(tops[1].logprob > tops[2].logprob);
  }
}

TEST_CASE("penalties see the prompt and the answer") {
  AnswerRules how = rules(1);
  how.token_ids = true;
  how.sampling.repeat_penalty = 10.0f;         // 2 / 10 = 0.2
  how.sampling.logit_bias = {{kThere, 0.5f}};  // -0.25 + 0.5 = 0.25
  CHECK(answered(how, {kHel}).output_ids == Tokens{kHel});
  CHECK(answered(how, {kHel}, {kHel}).output_ids == Tokens{kThere});
  how.max_tokens = 2;
  CHECK(answered(how, {kHel, kHel}).output_ids == Tokens{kHel, kThere});
}

TEST_CASE("all ids are handed out if they are asked for, also those that a stop string cut") {
  AnswerRules how = rules();
  how.token_ids = true;
  how.truncated = 7;
  how.stop = {"stop"};
  const Finished done = answered(how, {kThere, kLoStop});
  CHECK(done.shows_ids);
  CHECK(done.output_ids == Tokens{kThere, kLoStop});
  CHECK(done.output_tokens == 2);
  CHECK(done.truncated == 7);
}

TEST_CASE("logits that are no numbers end an answer without a token") {
  const WordModel model;
  Answer answer(rules(), {}, model);
  CHECK_FALSE(answer.take(WordModel::logits_for(kHel), model).has_value());
  std::vector<float> bad = WordModel::logits_for(kHel);
  bad[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(answer.take(bad, model) == FinishReason::non_finite);
  CHECK(answer.finish(FinishReason::non_finite).output_tokens == 1);
}

TEST_CASE("an answer may be moved between its tokens") {
  const WordModel model;
  AnswerRules how = rules();
  how.sampling.temperature = 5.0f;
  how.sampling.logprobs = 2;
  how.sampling.frequency_penalty = 1.0f;
  how.sampling.seed = 4;
  how.stop = {"hel there"};
  how.sampling.logit_bias = {{kEnd, -100.0f}};
  Answer still(how, Tokens{kHel}, model);
  Answer moved(how, Tokens{kHel}, model);
  for (int i = 0; i < 60; ++i) {
    Answer elsewhere(std::move(moved));
    const auto a = still.take(WordModel::logits_for(kThere), model);
    const auto b = elsewhere.take(WordModel::logits_for(kThere), model);
    CHECK(a == b);
    CHECK(still.last() == elsewhere.last());
    moved = std::move(elsewhere);
    if (a) break;
  }
  CHECK(still.finish(FinishReason::stop).text == moved.finish(FinishReason::stop).text);
}
