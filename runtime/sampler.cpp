// Sampling that gives the same token on every machine: random numbers by counting instead of by
// state, an exponential of our own, ties broken by token id, sums in a fixed order. The standard
// library's distributions and exp() differ between libraries, and one different draw changes the
// whole text.
//
// Penalties and biases touch few tokens of a vocabulary. These stand in a list in the order of
// their ids, and every walk over the logits goes from one to the next, with the model's logits
// untouched in between: nothing is copied, and without such parameters nothing is walked but the
// logits.
#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "lockstep/error.h"
#include "runtime/portable_math.h"

namespace lockstep {
namespace {

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
  constexpr std::uint32_t kInfinityBits = 0x7F800000u;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits == kInfinityBits || (bits & 0x7FFFFFFFu) > kInfinityBits;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
bool by_token(const T& a, const T& b) noexcept {
  return a.token < b.token;
}

struct Best {
  float logit = -kInfinity;
  std::size_t at = std::numeric_limits<std::size_t>::max();
};

// The first of the largest in [begin, end), or `best` if that is as large.
Best larger(Best best, std::span<const float> logits, std::size_t begin, std::size_t end) noexcept {
  for (std::size_t i = begin; i < end; ++i) {
    if (logits[i] > best.logit) best = {logits[i], i};
  }
  return best;
}

bool is_usable(std::span<const float> logits) noexcept {
  bool broken = false;
  for (const float logit : logits) broken |= is_nan_or_plus_infinity(logit);
  return !broken;
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
  if (!(repeat_penalty > 0.0f && repeat_penalty <= 10.0f)) {
    refuse("repeat_penalty", "in (0, 10]", repeat_penalty);
  }
  if (!(frequency_penalty >= -2.0f && frequency_penalty <= 2.0f)) {
    refuse("frequency_penalty", "in [-2, 2]", frequency_penalty);
  }
  if (!(presence_penalty >= -2.0f && presence_penalty <= 2.0f)) {
    refuse("presence_penalty", "in [-2, 2]", presence_penalty);
  }
  std::set<TokenId> biased;
  for (const TokenBias& one : logit_bias) {
    if (one.token < 0) refuse("a token of logit_bias", "at least 0", one.token);
    if (!biased.insert(one.token).second) refuse("a token of logit_bias", "named once", one.token);
    if (!(one.bias >= -kStrongestBias && one.bias <= kStrongestBias)) {
      refuse("logit_bias", "in [-100, 100]", one.bias);
    }
  }
  if (logprobs > kMaxLogprobs) refuse("logprobs", "at most 20", logprobs);
}

Sampler::Sampler(const SamplingParams& params, std::span<const TokenId> prompt,
                 std::span<const TokenId> end_tokens)
    : params_(params) {
  params_.check();
  list_edits(prompt, end_tokens);
}

// One entry for each token, from sources that may name it more than once.
void Sampler::list_edits(std::span<const TokenId> prompt, std::span<const TokenId> end_tokens) {
  for (const TokenBias& one : params_.logit_bias) {
    edits_.push_back({.token = one.token,
                      .bias = one.bias,
                      .is_banned = one.bias == -SamplingParams::kStrongestBias});
  }
  if (params_.repeat_penalty != 1.0f) {
    for (const TokenId token : prompt) edits_.push_back({.token = token, .is_in_prompt = true});
  }
  if (params_.min_tokens > 0) {
    for (const TokenId token : end_tokens) edits_.push_back({.token = token, .is_end = true});
  }
  std::erase_if(edits_, [](const Edit& edit) { return edit.token < 0; });
  std::stable_sort(edits_.begin(), edits_.end(), by_token<Edit>);
  std::size_t kept = 0;
  for (const Edit& edit : edits_) {
    if (kept == 0 || edits_[kept - 1].token != edit.token) {
      edits_[kept++] = edit;
      continue;
    }
    Edit& joined = edits_[kept - 1];
    joined.bias += edit.bias;  // at most one of the two has any: see SamplingParams::check()
    joined.is_banned |= edit.is_banned;
    joined.is_in_prompt |= edit.is_in_prompt;
    joined.is_end |= edit.is_end;
  }
  edits_.resize(kept);
}

bool Sampler::counts_tokens() const noexcept {
  return params_.repeat_penalty != 1.0f || params_.frequency_penalty != 0.0f ||
         params_.presence_penalty != 0.0f;
}

void Sampler::remember(TokenId token) {
  if (!counts_tokens()) return;
  auto at = std::lower_bound(edits_.begin(), edits_.end(), Edit{.token = token}, by_token<Edit>);
  if (at == edits_.end() || at->token != token) at = edits_.insert(at, {.token = token});
  ++at->generated;
}

float Sampler::changed(const Edit& edit, float logit) const noexcept {
  const bool too_early = edit.is_end && generated_ < params_.min_tokens;
  if (edit.is_banned || too_early || logit == -kInfinity) return -kInfinity;
  float result = logit + edit.bias;
  if (edit.is_in_prompt || edit.generated > 0) {
    result = result > 0.0f ? result / params_.repeat_penalty : result * params_.repeat_penalty;
  }
  if (edit.generated > 0) {
    result -= static_cast<float>(edit.generated) * params_.frequency_penalty;
    result -= params_.presence_penalty;
  }
  // What the model gave as a number stays one.
  constexpr float kLargest = std::numeric_limits<float>::max();
  return std::clamp(result, -kLargest, kLargest);
}

// Works out the changed logits of this step on the way. Nothing if the logits are not usable or no
// token is left.
std::optional<Sampler::Tops> Sampler::find_tops(std::span<const float> logits) noexcept {
  if (!is_usable(logits)) return std::nullopt;
  Best same;  // of the tokens whose logits stay the same
  Best edited;
  float given = -kInfinity;
  std::size_t i = 0;
  for (Edit& edit : edits_) {
    const auto at = static_cast<std::size_t>(edit.token);
    if (at >= logits.size()) break;
    same = larger(same, logits, i, at);
    edit.logit = changed(edit, logits[at]);
    if (edit.logit > edited.logit) edited = {edit.logit, at};
    given = std::max(given, logits[at]);
    i = at + 1;
  }
  same = larger(same, logits, i, logits.size());
  given = std::max(given, same.logit);
  const bool edited_wins =
      edited.logit > same.logit || (edited.logit == same.logit && edited.at < same.at);
  const Best& best = edited_wins ? edited : same;
  if (best.logit == -kInfinity) return std::nullopt;
  return Tops{given, static_cast<TokenId>(best.at), best.logit};
}

std::optional<Choice> Sampler::sample(std::span<const float> logits) {
  const std::optional<Tops> tops = find_tops(logits);
  if (!tops) return std::nullopt;
  const bool greedy = params_.temperature == 0.0f || params_.top_k == 1;
  Choice choice;
  choice.token = greedy ? tops->token : draw(logits, *tops);
  if (params_.logprobs >= 0) choice.logprobs = logprobs(logits, tops->given, choice.token);
  ++generated_;
  remember(choice.token);
  return choice;
}

ChoiceLogprobs Sampler::logprobs(std::span<const float> logits, float top, TokenId chosen) {
  const LogSoftmax softmax(logits, top);
  top_logprobs(logits, softmax, static_cast<std::size_t>(params_.logprobs), top_logprobs_);
  return {softmax(logits[static_cast<std::size_t>(chosen)]), top_logprobs_};
}

// All tokens that can be drawn at all, in the order of their ids.
void Sampler::list_candidates(std::span<const float> logits) {
  candidates_.clear();
  const auto add = [&](std::size_t i, float logit) {
    if (std::isfinite(logit)) candidates_.push_back({logit, static_cast<TokenId>(i), 0.0});
  };
  std::size_t i = 0;
  for (const Edit& edit : edits_) {
    const auto at = static_cast<std::size_t>(edit.token);
    if (at >= logits.size()) break;
    for (; i < at; ++i) add(i, logits[i]);
    add(i++, edit.logit);
  }
  for (; i < logits.size(); ++i) add(i, logits[i]);
}

TokenId Sampler::draw(std::span<const float> logits, const Tops& tops) {
  const double top{tops.logit};
  list_candidates(logits);
  keep_top_k();
  keep_top_p(top);
  keep_min_p(top);

  double total = 0.0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = exponential((candidate.logit - top) / params_.temperature);
    total += candidate.weight;
  }
  const double target = uniform(params_.seed, generated_) * total;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (sum > target) return candidate.id;
  }
  return tops.token;  // not reached unless the product above was rounded up to the total
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
