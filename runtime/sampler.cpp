// Sampling that gives the same token on every machine: random numbers by counting instead of by
// state, an exponential of our own, ties broken by token id, sums in a fixed order. The standard
// library's distributions and exp() differ between libraries, and one different draw changes the
// whole text.
#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr std::array<double, 14> kInverseFactorials = [] {
  std::array<double, 14> inverse{1.0};
  for (std::size_t n = 1; n < inverse.size(); ++n) {
    inverse[n] = inverse[n - 1] / static_cast<double>(n);
  }
  return inverse;
}();

// e^x for x <= 0 in plain multiplications and additions, to about one unit in the last place.
double exponential(double x) noexcept {
  constexpr double kLog2E = 1.44269504088896340736;
  constexpr double kLn2High = 0.693147180369123816490;  // 32 bits: k * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  if (x < -700.0) return 0.0;  // far below anything that is ever drawn, and no subnormals
  const int k = static_cast<int>(x * kLog2E - 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  double sum = 0.0;
  for (std::size_t n = kInverseFactorials.size(); n-- > 0;) sum = sum * r + kInverseFactorials[n];
  return std::ldexp(sum, k);
}

std::uint64_t mix(std::uint64_t x) noexcept {  // the output function of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Number `draw` of the stream `seed`, in [0, 1) with 53 bits. The seed is mixed first, so that
// neighbouring seeds (row numbers, say) are not shifted copies of one stream.
double uniform(std::uint64_t seed, std::uint64_t draw) noexcept {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;
  const std::uint64_t bits = mix(mix(seed + kStep) + (draw + 1) * kStep);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

bool is_nan_or_plus_infinity(float x) noexcept {
  constexpr std::uint32_t kInfinity = 0x7F800000u;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits == kInfinity || (bits & 0x7FFFFFFFu) > kInfinity;
}

// The first of the largest; nothing unless every logit is usable and one is finite.
std::optional<TokenId> greedy(std::span<const float> logits) noexcept {
  bool broken = false;
  for (const float logit : logits) broken |= is_nan_or_plus_infinity(logit);
  if (broken) return std::nullopt;
  float best = -std::numeric_limits<float>::infinity();
  std::size_t at = logits.size();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best) {
      best = logits[i];
      at = i;
    }
  }
  return at < logits.size() ? std::optional(static_cast<TokenId>(at)) : std::nullopt;
}

}  // namespace

void SamplingParams::check() const {
  // Written so that NaN fails.
  const auto refuse = [](std::string_view field, std::string_view range, auto value) {
    throw Error(ErrorCode::usage, fmt::format("{} must be {}, not {}", field, range, value));
  };
  if (!(temperature >= 0.0f && temperature <= 100.0f)) {
    refuse("temperature", "in [0, 100]", temperature);
  }
  if (top_k < 0) refuse("top_k", "at least 0", top_k);
  if (!(top_p > 0.0f && top_p <= 1.0f)) refuse("top_p", "in (0, 1]", top_p);
  if (!(min_p >= 0.0f && min_p <= 1.0f)) refuse("min_p", "in [0, 1]", min_p);
}

Sampler::Sampler(const SamplingParams& params) : params_(params) { params_.check(); }

std::optional<TokenId> Sampler::sample(std::span<const float> logits) {
  const std::uint64_t draw = draws_++;
  const std::optional<TokenId> best = greedy(logits);
  if (!best || params_.temperature == 0.0f || params_.top_k == 1) return best;
  const double top = logits[static_cast<std::size_t>(*best)];

  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) candidates_.push_back({logits[i], static_cast<TokenId>(i), 0.0});
  }
  keep_top_k();
  keep_top_p(top);
  keep_min_p(top);

  double total = 0.0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = exponential((candidate.logit - top) / params_.temperature);
    total += candidate.weight;
  }
  const double target = uniform(params_.seed, draw) * total;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (sum > target) return candidate.id;
  }
  return best;  // not reached unless the product above was rounded up to the total
}

// A total order, so that what is kept does not depend on the library's selection algorithm.
bool Sampler::before(const Candidate& a, const Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void Sampler::keep_top_k() {
  const auto k = static_cast<std::size_t>(params_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(candidates_.begin(), end, candidates_.end(), before);
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), before);
}

// The shortest run of best candidates whose probabilities reach top_p. Vocabularies are large and
// the run is mostly short, so candidates are put in order piece by piece and only as far as needed.
void Sampler::keep_top_p(double top) {
  if (params_.top_p >= 1.0f) return;
  double total = 0.0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = exponential(candidate.logit - top);
    total += candidate.weight;
  }
  const double wanted = total * double{params_.top_p};
  std::size_t ordered = 0;
  std::size_t kept = 0;
  for (double sum = 0.0; kept < candidates_.size() && (kept == 0 || sum < wanted); ++kept) {
    if (kept == ordered) {
      const auto from = candidates_.begin() + static_cast<std::ptrdiff_t>(ordered);
      ordered = std::min(candidates_.size(), std::max<std::size_t>(64, ordered * 8));
      const auto to = candidates_.begin() + static_cast<std::ptrdiff_t>(ordered);
      std::nth_element(from, to, candidates_.end(), before);
      std::sort(from, to, before);
    }
    sum += candidates_[kept].weight;
  }
  candidates_.resize(kept);
}

void Sampler::keep_min_p(double top) {
  if (params_.min_p <= 0.0f) return;
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return exponential(candidate.logit - top) < double{params_.min_p};
  });
}

}  // namespace lockstep
