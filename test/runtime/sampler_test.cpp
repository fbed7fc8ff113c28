// The sampler: greedy rules, cut-offs on logits made by hand, draws that repeat and that have the
// right frequencies.
#include "runtime/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "support/catch.h"

namespace {

using namespace lockstep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Logits = std::vector<float>;

std::optional<TokenId> sampled(Sampler& sampler, const Logits& logits) {
  const std::optional<Choice> choice = sampler.sample(logits);
  return choice ? std::optional(choice->token) : std::nullopt;
}

std::vector<TokenId> draw(const SamplingParams& params, const Logits& logits, int count) {
  Sampler sampler(params);
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(sampled(sampler, logits).value());
  return ids;
}

std::set<TokenId> drawn(const SamplingParams& params, const Logits& logits) {
  const std::vector<TokenId> ids = draw(params, logits, 2000);
  return {ids.begin(), ids.end()};
}

Logits log_of(const std::vector<double>& probabilities) {
  Logits logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

Logits random_logits(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Logits logits(size);
  for (float& logit : logits) logit = static_cast<float>(random() % 2001) / 100.0f - 10.0f;
  return logits;
}

}  // namespace

TEST_CASE("greedy takes the largest logit and the smallest id of equals") {
  Sampler sampler({});
  CHECK(sampled(sampler, Logits{1, 3, 2}) == 1);
  CHECK(sampled(sampler, Logits{1, 3, 3, 3}) == 1);
  CHECK(sampled(sampler, Logits{5}) == 0);
  CHECK(sampled(sampler, Logits{-kInfinity, -7, -kInfinity}) == 1);
  CHECK(sampled(sampler, Logits{-0.0f, 0.0f}) == 0);
  CHECK(sampled(sampler, Logits{0.0f, -0.0f}) == 0);
}

TEST_CASE("logits that are no numbers give nothing, greedy or not, wherever they stand") {
  for (const float temperature : {0.0f, 0.7f}) {
    for (const std::int32_t top_k : {0, 1, 2}) {
      Sampler sampler({.temperature = temperature, .top_k = top_k, .top_p = 0.9f, .min_p = 0.1f});
      for (const float bad : {kNan, -kNan, kInfinity}) {
        for (std::size_t at = 0; at < 5; ++at) {
          Logits logits{1, 2, 9, 4, -kInfinity};
          logits[at] = bad;
          CHECK_FALSE(sampled(sampler, logits).has_value());
        }
      }
      CHECK_FALSE(sampled(sampler, Logits{}).has_value());
      CHECK_FALSE(sampled(sampler, Logits{-kInfinity, -kInfinity}).has_value());
      CHECK(sampled(sampler, Logits{-kInfinity, -3, -kInfinity}) == 1);
    }
  }
}

TEST_CASE("drawn tokens have the frequencies of the softmax") {
  const std::vector<double> probabilities = {0.5, 0.05, 0.3, 0.15};
  const int count = 40000;
  for (const float temperature : {1.0f, 0.5f, 2.0f}) {
    std::array<double, 4> expected{};
    double total = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      total += expected[i] = std::pow(probabilities[i], 1.0 / temperature);
    }
    std::array<int, 4> seen{};
    const SamplingParams params{.temperature = temperature, .seed = 42};
    for (const TokenId id : draw(params, log_of(probabilities), count)) {
      ++seen[static_cast<std::size_t>(id)];
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const double p = expected[i] / total;
      const double deviation = std::sqrt(count * p * (1 - p));
      INFO("temperature " << temperature << ", token " << i << ", seen " << seen[i]);
      CHECK(std::abs(seen[i] - count * p) < 5 * deviation);
    }
  }
}

TEST_CASE("one seed repeats its draws, another gives others, and draws differ among themselves") {
  const Logits flat(1000, 0.0f);
  const SamplingParams params{.temperature = 1.0f, .seed = 1};
  const auto first = draw(params, flat, 200);
  CHECK(first == draw(params, flat, 200));
  CHECK(std::set<TokenId>(first.begin(), first.end()).size() > 150);
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    const auto other = draw({.temperature = 1.0f, .seed = seed}, flat, 200);
    int equal = 0;
    int shifted = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      equal += first[i] == other[i] ? 1 : 0;
      shifted += i + 1 < 200 && first[i + 1] == other[i] ? 1 : 0;
    }
    CHECK(equal < 10);
    CHECK(shifted < 10);
  }
}

TEST_CASE("draws are the same on every machine") {
  // Computed from the definitions (SplitMix64 of seed and draw number, softmax, cut-offs) by an
  // independent program. A different generator or order of cut-offs changes them.
  Logits logits(500);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 2001) / 128.0f;
  }
  const SamplingParams params{
      .temperature = 0.9f, .top_k = 100, .top_p = 0.95f, .min_p = 0.01f, .seed = 5};
  CHECK(draw(params, logits, 16) == std::vector<TokenId>{121, 165, 426, 402, 377, 239, 167, 331,
                                                         260, 143, 495, 165, 260, 1, 72, 95});
}

TEST_CASE("top-k keeps the k largest, smallest ids first among equals") {
  const Logits logits{1, 5, 4, 5, 3, 4};
  CHECK(drawn({.temperature = 2.0f, .top_k = 1}, logits) == std::set<TokenId>{1});
  CHECK(drawn({.temperature = 2.0f, .top_k = 2}, logits) == std::set<TokenId>{1, 3});
  CHECK(drawn({.temperature = 2.0f, .top_k = 3}, logits) == std::set<TokenId>{1, 2, 3});
  CHECK(drawn({.temperature = 2.0f, .top_k = 6}, logits).size() == 6);
  CHECK(drawn({.temperature = 2.0f, .top_k = 1000}, logits).size() == 6);
  CHECK(drawn({.temperature = 2.0f, .top_k = 0}, logits).size() == 6);
  for (unsigned seed = 0; seed < 50; ++seed) {  // many ties among 30 logits
    const Logits random = random_logits(30, seed);
    Sampler greedy({});
    CHECK(draw({.temperature = 1.0f, .top_k = 1, .seed = seed}, random, 1)[0] ==
          sampled(greedy, random));
  }
}

TEST_CASE("top-p keeps the shortest run of best tokens that reaches p") {
  const Logits logits = log_of({0.1, 0.4, 0.2, 0.3});  // in order: 1, 3, 2, 0
  const auto with = [&](float top_p) {
    return drawn({.temperature = 1.0f, .top_p = top_p}, logits);
  };
  CHECK(with(0.01f) == std::set<TokenId>{1});
  CHECK(with(0.39f) == std::set<TokenId>{1});
  CHECK(with(0.41f) == std::set<TokenId>{1, 3});
  CHECK(with(0.69f) == std::set<TokenId>{1, 3});
  CHECK(with(0.71f) == std::set<TokenId>{1, 2, 3});
  CHECK(with(0.91f) == std::set<TokenId>{0, 1, 2, 3});
  CHECK(with(1.0f) == std::set<TokenId>{0, 1, 2, 3});
  // After top-k the probabilities are those of the k alone: 0.4 / 0.7 reaches 0.5.
  CHECK(drawn({.temperature = 1.0f, .top_k = 2, .top_p = 0.5f}, logits) == std::set<TokenId>{1});
  // The temperature comes last and changes nothing about what is kept.
  CHECK(drawn({.temperature = 50.0f, .top_p = 0.41f}, logits) == std::set<TokenId>{1, 3});
}

TEST_CASE("top-p over a large vocabulary keeps what a full sort would keep") {
  for (const float top_p : {0.05f, 0.5f, 0.9f, 0.999f}) {
    const Logits logits = random_logits(2000, 11);
    std::vector<std::size_t> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    std::set<TokenId> kept;
    double sum = 0;
    for (const std::size_t i : order) {
      if (sum >= top_p * total) break;
      sum += std::exp(double{logits[i]});
      kept.insert(static_cast<TokenId>(i));
    }
    // At a high temperature every kept token is about equally likely.
    Sampler sampler({.temperature = 100.0f, .top_p = top_p});
    std::set<TokenId> seen;
    for (std::size_t i = 0; i < 12 * kept.size() + 200; ++i) seen.insert(*sampled(sampler, logits));
    INFO("top_p " << top_p << ", kept " << kept.size());
    CHECK(seen == kept);
  }
}

TEST_CASE("min-p keeps what has at least that share of the best token's probability") {
  const Logits logits = log_of({0.1, 0.4, 0.2, 0.3});
  const auto with = [&](float min_p) {
    return drawn({.temperature = 1.0f, .min_p = min_p}, logits);
  };
  CHECK(with(1.0f) == std::set<TokenId>{1});
  CHECK(with(0.76f) == std::set<TokenId>{1});
  CHECK(with(0.74f) == std::set<TokenId>{1, 3});
  CHECK(with(0.49f) == std::set<TokenId>{1, 2, 3});
  CHECK(with(0.24f) == std::set<TokenId>{0, 1, 2, 3});
  CHECK(drawn({.temperature = 100.0f, .min_p = 0.74f}, logits) == std::set<TokenId>{1, 3});
}

TEST_CASE("extreme temperatures and logits stay in range") {
  const float big = std::numeric_limits<float>::max();
  CHECK(drawn({.temperature = 1e-45f}, {1, 2, 2, 0}) == std::set<TokenId>{1, 2});
  CHECK(drawn({.temperature = 100.0f}, {big, -big, 0}) == std::set<TokenId>{0});
  CHECK(drawn({.temperature = 1.0f, .top_p = 0.5f}, {-big, -big}) == std::set<TokenId>{0});
  CHECK(drawn({.temperature = 1.0f, .top_k = 3}, {-kInfinity, 1, -kInfinity, 1}) ==
        std::set<TokenId>{1, 3});
}

TEST_CASE("parameters out of range are refused by name") {
  const auto message = [](const SamplingParams& params) -> std::string {
    try {
      Sampler sampler(params);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return error.what();
    }
    return "accepted";
  };
  CHECK(message({}) == "accepted");
  CHECK(message({.temperature = 100.0f, .top_k = 0, .top_p = 1.0f, .min_p = 1.0f}) == "accepted");
  CHECK(message({.temperature = -0.1f}) == "temperature must be in [0, 100], not -0.1");
  CHECK(message({.temperature = 100.5f}) == "temperature must be in [0, 100], not 100.5");
  CHECK(message({.temperature = kNan}).find("temperature must be in [0, 100]") == 0);
  CHECK(message({.temperature = kInfinity}).find("temperature must be in [0, 100]") == 0);
  CHECK(message({.top_k = -1}) == "top_k must be at least 0, not -1");
  CHECK(message({.top_p = 0.0f}) == "top_p must be in (0, 1], not 0");
  CHECK(message({.top_p = 1.5f}) == "top_p must be in (0, 1], not 1.5");
  CHECK(message({.top_p = kNan}).find("top_p must be in (0, 1]") == 0);
  CHECK(message({.min_p = -0.5f}) == "min_p must be in [0, 1], not -0.5");
  CHECK(message({.min_p = 2.0f}) == "min_p must be in [0, 1], not 2");
  CHECK(message({.min_p = kNan}).find("min_p must be in [0, 1]") == 0);
}
