// What changes logits before a token is chosen: penalties, biases, bans; and the log-probabilities
// that a choice reports. Checked against a reference of a few lines in float64 that knows nothing
// of the sampler's lists.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "runtime/sampler.h"
#include "support/catch.h"

namespace {

using namespace lockstep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kVocabulary = 40;

using Logits = std::vector<float>;
using Tokens = std::vector<TokenId>;

// The definitions, token by token.
std::vector<double> reference(const SamplingParams& params, const Tokens& prompt,
                              const Tokens& answer, const Tokens& ends, const Logits& logits) {
  std::vector<double> changed(logits.begin(), logits.end());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto count = std::count(answer.begin(), answer.end(), id);
    const bool is_in_prompt = std::count(prompt.begin(), prompt.end(), id) > 0;
    double& x = changed[i];
    bool is_banned = answer.size() < params.min_tokens && std::count(ends.begin(), ends.end(), id);
    for (const TokenBias& one : params.logit_bias) {
      if (one.token != id) continue;
      is_banned = is_banned || one.bias == -100.0f;
      x += one.bias;
    }
    if (is_in_prompt || count > 0) {
      x = x > 0 ? x / params.repeat_penalty : x * params.repeat_penalty;
    }
    x -= static_cast<double>(count) * params.frequency_penalty;
    if (count > 0) x -= params.presence_penalty;
    if (is_banned) x = -std::numeric_limits<double>::infinity();
  }
  return changed;
}

Logits random_logits(std::mt19937& random) {
  Logits logits(kVocabulary);
  for (float& logit : logits) logit = static_cast<float>(random() % 20001) / 1000.0f - 10.0f;
  return logits;
}

float pick(std::mt19937& random, const std::vector<float>& values) {
  return values[random() % values.size()];
}

SamplingParams random_params(std::mt19937& random) {
  SamplingParams params;
  params.repeat_penalty = pick(random, {1.0f, 1.3f, 0.5f, 10.0f});
  params.frequency_penalty = pick(random, {0.0f, 0.7f, -2.0f, 2.0f});
  params.presence_penalty = pick(random, {0.0f, 1.1f, -2.0f, 2.0f});
  std::map<TokenId, float> biases;
  for (std::size_t i = random() % 12; i > 0; --i) {
    biases[static_cast<TokenId>(random() % kVocabulary)] =
        pick(random, {-100.0f, 100.0f, 0.0f, 3.5f, -2.25f});
  }
  for (const auto& [token, bias] : biases) params.logit_bias.push_back({token, bias});
  std::shuffle(params.logit_bias.begin(), params.logit_bias.end(), random);
  params.min_tokens = random() % 8;
  params.seed = random();
  return params;
}

Tokens random_tokens(std::mt19937& random, std::size_t count) {
  Tokens tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % kVocabulary);
  return tokens;
}

TokenId greedy_choice(const SamplingParams& params, const Logits& logits, const Tokens& prompt,
                      const Tokens& so_far = {}) {
  Sampler sampler(params, prompt);
  for (const TokenId token : so_far) {  // one that is forced by its logits
    Logits forced(logits.size(), -1000.0f);
    forced[static_cast<std::size_t>(token)] = 1000.0f;
    REQUIRE(sampler.sample(forced)->token == token);
  }
  const std::optional<Choice> choice = sampler.sample(logits);
  REQUIRE(choice.has_value());
  return choice->token;
}

std::string refusal(const SamplingParams& params) {
  try {
    params.check();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("greedy answers under penalties, biases and bans are those of the definitions") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const SamplingParams params = random_params(random);
    const Tokens prompt = random_tokens(random, random() % 30);
    const Tokens ends = random_tokens(random, random() % 3);
    Sampler sampler(params, prompt, ends);
    Tokens answer;
    for (int step = 0; step < 20; ++step) {
      const Logits logits = random_logits(random);
      const std::vector<double> changed = reference(params, prompt, answer, ends, logits);
      const double best = *std::max_element(changed.begin(), changed.end());
      const std::optional<Choice> choice = sampler.sample(logits);
      REQUIRE(choice.has_value());
      INFO("round " << round << ", step " << step << ", token " << choice->token);
      // Where two tokens differ by rounding alone, either is right.
      CHECK(changed[static_cast<std::size_t>(choice->token)] >= best - 1e-4);
      answer.push_back(choice->token);
    }
  }
}

TEST_CASE("draws under penalties are the plain draws from logits changed beforehand") {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    SamplingParams params = random_params(random);
    params.temperature = 1.5f;
    params.top_k = static_cast<std::int32_t>(random() % 30);
    params.top_p = pick(random, {1.0f, 0.9f});
    params.min_p = pick(random, {0.0f, 0.02f});
    params.repeat_penalty = pick(random, {1.0f, 0.5f, 2.0f});  // powers of two: nothing is rounded
    params.frequency_penalty = pick(random, {0.0f, 0.5f, -1.0f});
    params.presence_penalty = pick(random, {0.0f, 0.25f});
    const SamplingParams plain{.temperature = params.temperature,
                               .top_k = params.top_k,
                               .top_p = params.top_p,
                               .min_p = params.min_p,
                               .seed = params.seed};
    const Tokens prompt = random_tokens(random, 10);
    const Tokens ends{3, 5};
    Sampler sampler(params, prompt, ends);
    Sampler reference_sampler(plain);
    Tokens answer;
    for (int step = 0; step < 20; ++step) {
      Logits logits(kVocabulary);
      for (float& logit : logits) logit = static_cast<float>(random() % 321) / 32.0f - 5.0f;
      const std::vector<double> changed = reference(params, prompt, answer, ends, logits);
      const Logits beforehand(changed.begin(), changed.end());
      const TokenId token = sampler.sample(logits)->token;
      INFO("round " << round << ", step " << step);
      CHECK(token == reference_sampler.sample(beforehand)->token);
      answer.push_back(token);
    }
  }
}

TEST_CASE("bias comes first, then the repeat penalty, then frequency and presence") {
  const SamplingParams biased{.repeat_penalty = 2.0f, .logit_bias = {{0, 1.0f}}};
  // (1 + 1) / 2 = 1, not 1 / 2 + 1 = 1.5.
  CHECK(greedy_choice(biased, {1.0f, 1.2f}, {0}) == 1);
  CHECK(greedy_choice(biased, {1.0f, 0.9f}, {0}) == 0);
  const SamplingParams frequent{.repeat_penalty = 2.0f, .frequency_penalty = 0.5f};
  // 2 / 2 - 0.5 = 0.5, not (2 - 0.5) / 2 = 0.75.
  CHECK(greedy_choice(frequent, {2.0f, 0.6f}, {}, {0}) == 1);
  CHECK(greedy_choice(frequent, {2.0f, 0.4f}, {}, {0}) == 0);
  // A negative logit is multiplied: -1 * 2, below -1.5.
  CHECK(greedy_choice({.repeat_penalty = 2.0f}, {-1.0f, -1.5f}, {0}) == 1);
  CHECK(greedy_choice({.repeat_penalty = 0.5f}, {-1.0f, -0.6f}, {0}) == 0);
}

TEST_CASE("frequency and presence count the answer, the repeat penalty the prompt too") {
  const Logits logits{2.0f, 1.0f};
  CHECK(greedy_choice({.presence_penalty = 2.0f}, logits, {0, 0, 0}) == 0);
  CHECK(greedy_choice({.frequency_penalty = 2.0f}, logits, {0, 0, 0}) == 0);
  CHECK(greedy_choice({.presence_penalty = 2.0f}, logits, {}, {0}) == 1);
  CHECK(greedy_choice({.presence_penalty = 0.75f}, logits, {}, {0, 0, 0}) == 0);  // once
  CHECK(greedy_choice({.frequency_penalty = 0.75f}, logits, {}, {0}) == 0);       // 2 - 0.75
  CHECK(greedy_choice({.frequency_penalty = 0.75f}, logits, {}, {0, 0}) == 1);    // 2 - 1.5
  CHECK(greedy_choice({.repeat_penalty = 4.0f}, logits, {0}) == 1);
  CHECK(greedy_choice({.repeat_penalty = 4.0f}, logits, {}, {0}) == 1);
  CHECK(greedy_choice({.repeat_penalty = 4.0f}, {9.0f, 1.0f}, {0, 0, 0}, {0}) == 0);  // once
}

TEST_CASE("a bias of -100 bans however large the logit is, one of 100 need not win") {
  const Logits logits{1e30f, 0.0f, -50.0f};
  CHECK(greedy_choice({.logit_bias = {{0, -100.0f}}}, logits, {}) == 1);
  CHECK(greedy_choice({.logit_bias = {{0, -100.0f}, {2, 100.0f}}}, logits, {}) == 2);
  CHECK(greedy_choice({.logit_bias = {{0, -99.5f}}}, logits, {}) == 0);
  CHECK(greedy_choice({.logit_bias = {{2, 100.0f}}}, logits, {}) == 0);
  for (unsigned seed = 0; seed < 200; ++seed) {
    Sampler sampler({.temperature = 100.0f, .seed = seed, .logit_bias = {{1, -100.0f}}});
    CHECK(sampler.sample(Logits{0, 5, 0})->token != 1);
  }
  Sampler nothing({.logit_bias = {{0, -100.0f}, {1, -100.0f}}});
  CHECK_FALSE(nothing.sample(Logits{1, 2}).has_value());
}

TEST_CASE("of equals the smallest id wins, changed or not") {
  const SamplingParams params{.logit_bias = {{1, 1.0f}, {3, 2.0f}}};
  CHECK(greedy_choice(params, {0, 4, 5, 0}, {}) == 1);
  CHECK(greedy_choice(params, {0, 0, 5, 3}, {}) == 2);
  CHECK(greedy_choice(params, {5, 4, 5, 3}, {}) == 0);
  CHECK(greedy_choice(params, {0, 4, 0, 3}, {}) == 1);
}

TEST_CASE("end tokens wait until there are min_tokens") {
  Sampler sampler({.min_tokens = 3}, {}, Tokens{1, 2});
  const Logits logits{1, 9, 8};
  for (int i = 0; i < 3; ++i) CHECK(sampler.sample(logits)->token == 0);
  CHECK(sampler.sample(logits)->token == 1);
}

TEST_CASE("penalties never make a number of the model infinite, and let no bad one pass") {
  const float big = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::min();
  CHECK(greedy_choice({.repeat_penalty = tiny}, {5.0f, 1.0f}, {0}) == 0);
  CHECK(greedy_choice({.repeat_penalty = 10.0f}, {-big, -kInfinity}, {0}) == 0);
  Sampler drawing({.temperature = 1.0f, .repeat_penalty = tiny}, Tokens{0});
  CHECK(drawing.sample(Logits{5.0f, 1.0f})->token == 0);
  CHECK(greedy_choice({.logit_bias = {{0, 100.0f}}}, {big, 0.0f}, {}) == 0);
  CHECK(greedy_choice({.logit_bias = {{0, 100.0f}}}, {-kInfinity, -9.0f}, {}) == 1);
  for (const float bad : {kNan, kInfinity}) {
    for (const float temperature : {0.0f, 1.0f}) {
      for (std::size_t at = 0; at < 4; ++at) {
        Logits logits{1, 2, 3, 4};
        logits[at] = bad;
        Sampler sampler({.temperature = temperature,
                         .repeat_penalty = 2.0f,
                         .logit_bias = {{1, -100.0f}, {2, 5.0f}},
                         .logprobs = 2},
                        Tokens{1, 3});
        CHECK_FALSE(sampler.sample(logits).has_value());
      }
    }
  }
}

TEST_CASE("ids outside the vocabulary have no effect") {
  const SamplingParams params{.repeat_penalty = 2.0f, .logit_bias = {{1000, 50.0f}, {5, -100.0f}}};
  Sampler sampler(params, Tokens{-1, 2, 1 << 30}, Tokens{kNoToken, 4000});
  CHECK(sampler.sample(Logits{1, 3, 4})->token == 1);
}

TEST_CASE("a sampler may be moved between any two tokens") {
  std::mt19937 random(3);
  const SamplingParams params{.temperature = 1.0f,
                              .seed = 9,
                              .repeat_penalty = 1.5f,
                              .frequency_penalty = 0.5f,
                              .logit_bias = {{4, 2.0f}},
                              .min_tokens = 5,
                              .logprobs = 3};
  const Tokens prompt{1, 2, 3};
  Sampler still(params, prompt, Tokens{0});
  Sampler moved(params, prompt, Tokens{0});
  for (int i = 0; i < 50; ++i) {
    const Logits logits = random_logits(random);
    Sampler elsewhere(std::move(moved));
    const std::optional<Choice> a = still.sample(logits);
    const std::optional<Choice> b = elsewhere.sample(logits);
    CHECK(a->token == b->token);
    CHECK(a->logprobs->chosen == b->logprobs->chosen);
    CHECK(std::equal(a->logprobs->top.begin(), a->logprobs->top.end(), b->logprobs->top.begin(),
                     b->logprobs->top.end()));
    moved = std::move(elsewhere);
  }
}

TEST_CASE("log-probabilities are the model's own, whatever changes the choice") {
  const Logits logits{1.0f, 3.0f, 2.0f, -kInfinity};
  const double total = std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
  const SamplingParams params{.temperature = 0.01f,
                              .top_k = 1,
                              .repeat_penalty = 3.0f,
                              .logit_bias = {{1, -100.0f}, {0, 50.0f}},
                              .logprobs = 2};
  Sampler sampler(params, Tokens{0, 1, 2});
  const std::optional<Choice> choice = sampler.sample(logits);
  REQUIRE(choice->logprobs.has_value());
  CHECK(choice->token == 0);
  CHECK(std::abs(choice->logprobs->chosen - std::log(std::exp(1.0) / total)) < 1e-14);
  REQUIRE(choice->logprobs->top.size() == 2);
  CHECK(choice->logprobs->top[0].token == 1);
  CHECK(choice->logprobs->top[1].token == 2);
  CHECK(std::abs(choice->logprobs->top[0].logprob - std::log(std::exp(3.0) / total)) < 1e-14);

  Sampler all({.logprobs = 20});
  const std::span<const TokenLogprob> top = all.sample(logits)->logprobs->top;
  REQUIRE(top.size() == 4);
  double sum = 0;
  for (const TokenLogprob& one : top) sum += std::exp(one.logprob);
  CHECK(std::abs(sum - 1) < 1e-12);
  CHECK(top[3] == TokenLogprob{3, -std::numeric_limits<double>::infinity()});

  Sampler chosen_alone({.logprobs = 0});
  CHECK(chosen_alone.sample(logits)->logprobs->top.empty());
  Sampler none({});
  CHECK_FALSE(none.sample(logits)->logprobs.has_value());
}

TEST_CASE("log-probabilities are the same bits under any penalty") {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    SamplingParams params = random_params(random);
    params.logprobs = 20;
    params.repeat_penalty = pick(random, {1.0f, 1e-30f, 10.0f});
    Sampler changed(params, random_tokens(random, 20));
    Sampler plain({.logprobs = 20});
    for (int step = 0; step < 3; ++step) {
      const Logits logits = random_logits(random);
      const std::optional<Choice> choice = changed.sample(logits);
      const std::span<const TokenLogprob> expected = plain.sample(logits)->logprobs->top;
      REQUIRE(choice.has_value());
      const std::span<const TokenLogprob> top = choice->logprobs->top;
      CHECK(std::equal(top.begin(), top.end(), expected.begin(), expected.end()));
      for (const TokenLogprob& one : expected) {
        if (one.token == choice->token) CHECK(choice->logprobs->chosen == one.logprob);
      }
    }
  }
}

TEST_CASE("asking for log-probabilities changes no draw") {
  std::mt19937 random(4);
  Sampler with({.temperature = 1.0f, .top_p = 0.9f, .seed = 3, .logprobs = 20});
  Sampler without({.temperature = 1.0f, .top_p = 0.9f, .seed = 3});
  for (int i = 0; i < 100; ++i) {
    const Logits logits = random_logits(random);
    CHECK(with.sample(logits)->token == without.sample(logits)->token);
  }
}

TEST_CASE("penalties, biases and log-probabilities out of range are refused by name") {
  CHECK(refusal({.repeat_penalty = 10.0f, .frequency_penalty = -2.0f, .presence_penalty = 2.0f}) ==
        "accepted");
  CHECK(refusal({.repeat_penalty = 0.0f}) == "repeat_penalty must be in (0, 10], not 0");
  CHECK(refusal({.repeat_penalty = -1.0f}) == "repeat_penalty must be in (0, 10], not -1");
  CHECK(refusal({.repeat_penalty = 10.5f}) == "repeat_penalty must be in (0, 10], not 10.5");
  CHECK(refusal({.repeat_penalty = kNan}).find("repeat_penalty must be in (0, 10]") == 0);
  CHECK(refusal({.frequency_penalty = 2.5f}) == "frequency_penalty must be in [-2, 2], not 2.5");
  CHECK(refusal({.frequency_penalty = kNan}).find("frequency_penalty must be in [-2, 2]") == 0);
  CHECK(refusal({.presence_penalty = -2.5f}) == "presence_penalty must be in [-2, 2], not -2.5");
  CHECK(refusal({.presence_penalty = kInfinity}).find("presence_penalty must be") == 0);
  CHECK(refusal({.logit_bias = {{0, 100.5f}}}) == "logit_bias must be in [-100, 100], not 100.5");
  CHECK(refusal({.logit_bias = {{0, kNan}}}).find("logit_bias must be in [-100, 100]") == 0);
  CHECK(refusal({.logit_bias = {{-1, 1.0f}}}) ==
        "a token of logit_bias must be at least 0, not -1");
  CHECK(refusal({.logit_bias = {{7, 1.0f}, {8, 1.0f}, {7, 2.0f}}}) ==
        "a token of logit_bias must be named once, not 7");
  CHECK(refusal({.logprobs = 21}) == "logprobs must be at most 20, not 21");
}
