// Log-probabilities: right to the last digits that can be asked for, in a fixed order, the same
// bits on every machine.
#include "runtime/logprobs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/portable_math.h"
#include "support/catch.h"

namespace {

using namespace lockstep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Logits = std::vector<float>;

// Spread evenly over `range` below 10, in a scrambled order, with many ties if `steps` is small.
Logits made_logits(std::size_t size, float range, std::uint64_t steps = 1 << 20) {
  Logits logits(size);
  std::uint64_t state = 12345 + size;
  for (float& logit : logits) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto step = static_cast<float>((state >> 33) % steps);
    logit = 10.0f - range * step / static_cast<float>(steps);
  }
  return logits;
}

LogSoftmax softmax_of(const Logits& logits) {
  return {logits, *std::max_element(logits.begin(), logits.end())};
}

long double reference_log_sum(const Logits& logits) {
  const long double top = *std::max_element(logits.begin(), logits.end());
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - top);
  return top + std::log(sum);
}

double ulps(double value, long double truth) {
  const double unit = std::nextafter(std::abs(value), kInfinity) - std::abs(value);
  return static_cast<double>(std::abs(value - truth) / unit);
}

std::vector<TokenLogprob> top(const Logits& logits, std::size_t count) {
  std::vector<TokenLogprob> out{{7, 7}};  // is replaced
  top_logprobs(logits, softmax_of(logits), count, out);
  return out;
}

}  // namespace

TEST_CASE("the exponential and the logarithm are right to about a unit in the last place") {
  for (double x = 0; x > -690; x -= 0.37 + 1e-3 * std::abs(x)) {
    INFO("e^" << x);
    CHECK(ulps(exponential(x), std::exp(static_cast<long double>(x))) < 1.5);
  }
  CHECK(exponential(0) == 1.0);
  CHECK(exponential(-700.5) == 0.0);
  CHECK(exponential(-std::numeric_limits<double>::infinity()) == 0.0);
  CHECK(logarithm(1) == 0.0);
  for (double x = 1.0 + 1e-9; x < 1e300; x = x * 1.09 + 1e-4) {
    INFO("ln " << x);
    CHECK(ulps(logarithm(x), std::log(static_cast<long double>(x))) < 1.5);
  }
  for (double x = 0.999; x > 1e-300; x *= 0.77) {
    INFO("ln " << x);
    CHECK(ulps(logarithm(x), std::log(static_cast<long double>(x))) < 1.5);
  }
}

TEST_CASE("the probabilities of a whole vocabulary add up to one") {
  for (const std::size_t size : {1, 2, 15, 16, 17, 31, 257, 4096, 32003, 128256}) {
    for (const float range : {0.0f, 0.5f, 20.0f, 300.0f, 2000.0f}) {
      const Logits logits = made_logits(size, range);
      const LogSoftmax softmax = softmax_of(logits);
      long double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<long double>(softmax(logit)));
      INFO(size << " logits over " << range);
      CHECK(std::abs(static_cast<double>(sum - 1)) < 1e-12);
      const long double log_sum = reference_log_sum(logits);
      for (const std::size_t i : {std::size_t{0}, size / 3, size - 1}) {
        CHECK(std::abs(static_cast<double>(softmax(logits[i]) - (logits[i] - log_sum))) < 1e-12);
        CHECK(softmax(logits[i]) <= 0);
      }
    }
  }
}

TEST_CASE("logits of minus infinity and of the largest size have their log-probabilities") {
  const Logits some{-kInfinity, 2, -kInfinity, 2};
  CHECK(softmax_of(some)(-kInfinity) == -std::numeric_limits<double>::infinity());
  CHECK(std::abs(softmax_of(some)(2) - std::log(0.5)) < 1e-15);
  const float big = std::numeric_limits<float>::max();
  CHECK(softmax_of({big, -big})(big) == 0.0);
  CHECK(softmax_of({big, -big})(-big) == -2.0 * double{big});
  CHECK(softmax_of({3})(3) == 0.0);
}

TEST_CASE("the likeliest tokens come in the order of a stable sort of the whole vocabulary") {
  for (const std::uint64_t steps : {1, 2, 10, 1000, 1 << 20}) {
    for (const std::size_t size : {1, 5, 20, 21, 3000}) {
      Logits logits = made_logits(size, 15.0f, steps);
      if (size > 20) logits[size / 2] = -kInfinity;
      std::vector<std::size_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
      const LogSoftmax softmax = softmax_of(logits);
      for (const std::size_t count : {0, 1, 2, 19, 20}) {
        const std::vector<TokenLogprob> found = top(logits, count);
        REQUIRE(found.size() == std::min(count, size));
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].token == static_cast<TokenId>(order[i]));
          CHECK(found[i].logprob == softmax(logits[order[i]]));
        }
      }
    }
  }
  CHECK(top({-kInfinity, 1, -kInfinity}, 3) ==
        std::vector<TokenLogprob>{{1, 0.0},
                                  {0, -std::numeric_limits<double>::infinity()},
                                  {2, -std::numeric_limits<double>::infinity()}});
  const Logits rising = [] {
    Logits values(1000);
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
  }();
  CHECK(top(rising, 2)[1].token == 998);
}

TEST_CASE("log-probabilities are the same bits on every machine") {
  // Computed from the definitions (polynomials, lanes, tree) by an independent program in float64.
  // Sums in another order, with 1, 2, 4, 8 or 32 lanes, differ for these logits.
  Logits logits(1501);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 2003) / 142.0f;
  }
  const LogSoftmax softmax = softmax_of(logits);
  CHECK(softmax(*std::max_element(logits.begin(), logits.end())) == -0x1.2b1b0d80b73b1p+2);
  CHECK(softmax(logits[500]) == -0x1.ece89580b73b1p+2);
  CHECK(softmax(logits[1500]) == -0x1.b8b530c05b9d8p+3);
  CHECK(logarithm(10.0) == 0x1.26bb1bbb55516p+1);
  CHECK(exponential(-12.75) == 0x1.858af84b74310p-19);
}
