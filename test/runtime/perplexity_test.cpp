// Perplexity and KL divergence: the scores of one row against float64, the statistics against
// values worked out by hand, the file of saved logits against bytes written by hand, whole runs
// for every way of cutting the same text into steps.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/kernels.h"
#include "runtime/evaluate/perplexity.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::evaluate;
using namespace lockstep::test;

namespace {

std::vector<float> random_logits(std::size_t n, std::uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<double> log_softmax(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  std::vector<double> result;
  for (const float logit : logits) result.push_back(double{logit} - std::log(sum));
  return result;
}

const quant::RowKernels& scalar_kernels() { return quant::row_kernels(quant::Isa::scalar); }

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Packed {
  std::vector<std::uint16_t> codes;
  PackedLogProbs probs;
  explicit Packed(std::size_t n) : codes(n) { probs.codes = codes; }
};

class NoObserver final : public EvaluationObserver {
 public:
  void on_chunks(std::size_t done, std::size_t, const ScoreStatistics&) override {
    chunks = done;
    if (stop_after != 0 && done >= stop_after) stop = true;
  }
  std::size_t chunks = 0, stop_after = 0;
  std::atomic<bool> stop{false};
};

std::vector<TokenId> some_tokens(std::size_t n) {
  std::mt19937 random(7);
  std::vector<TokenId> tokens(n);
  for (TokenId& token : tokens) token = static_cast<TokenId>(3 + random() % 290);
  return tokens;
}

std::string error_of(const std::filesystem::path& file) {
  try {
    LogitsReader reader(file);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("perplexity: the score of a row is that of float64") {
  for (const std::size_t n : {1u, 2u, 31u, 300u, 1025u}) {
    const std::vector<float> logits = random_logits(n, 3, 4.0f);
    const std::vector<double> log_p = log_softmax(logits);
    TokenScorer scorer(scalar_kernels(), n);
    for (const std::size_t token : {std::size_t{0}, n / 2, n - 1}) {
      CAPTURE(n, token);
      const TokenScore score = scorer.score(logits, token);
      CHECK(std::fabs(score.nll + log_p[token]) < 1e-6 * (1 + std::fabs(log_p[token])));
      CHECK(score.is_finite);
    }
  }
}

TEST_CASE("perplexity: packing keeps log-probabilities to half a step, divergence follows") {
  const std::vector<float> base = random_logits(500, 1, 2.0f);
  const std::vector<float> other = random_logits(500, 2, 2.0f);
  const std::vector<double> log_base = log_softmax(base);
  const std::vector<double> log_other = log_softmax(other);
  TokenScorer scorer(scalar_kernels(), base.size());
  Packed packed(base.size());
  const TokenScore own = scorer.score_and_pack(base, 17, packed.probs);
  CHECK(std::fabs(own.nll + log_base[17]) < 1e-5);
  for (std::size_t i = 0; i < base.size(); ++i) {
    REQUIRE(std::fabs(double{packed.probs.at(i)} - log_base[i]) <=
            0.5 * double{packed.probs.step} + 1e-5);
  }
  double kl = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    kl += std::exp(log_base[i]) * (log_base[i] - log_other[i]);
  }
  const TokenScore score = scorer.score(other, 17, packed.probs, kUnknown);
  CHECK(std::fabs(score.kl - kl) < 1e-3 * kl);
  CHECK(std::fabs(score.p_difference - (std::exp(log_other[17]) - std::exp(log_base[17]))) < 1e-6);
  const auto top = [](const std::vector<float>& x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  CHECK(score.same_top == (top(base) == top(other)));
  const TokenScore same = scorer.score(base, 17, packed.probs, 2.5);
  CHECK(std::fabs(same.kl) < 1e-4);
  CHECK(same.same_top);
  CHECK(same.base_nll == 2.5);
  // The public form clips at 16 nats below the likeliest token.
  std::vector<float> steep(300, -100.0f);
  steep[4] = 0;
  steep[5] = -3;
  Packed clipped(steep.size());
  TokenScorer(scalar_kernels(), steep.size()).score_and_pack(steep, 4, clipped.probs);
  CHECK(clipped.codes[4] == 65535);
  CHECK(clipped.codes[0] == 0);
  CHECK(clipped.probs.at(0) < -15.9f);
}

TEST_CASE("perplexity: hostile logits are noticed and packed as nothing") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  TokenScorer scorer(scalar_kernels(), 40);
  for (const float poison : {std::nanf(""), kInf}) {
    for (const std::size_t at : {0u, 1u, 39u}) {
      std::vector<float> logits = random_logits(40, 5, 1.0f);
      logits[at] = poison;
      Packed packed(40);
      CHECK_FALSE(scorer.score(logits, 3).is_finite);
      CHECK_FALSE(scorer.score_and_pack(logits, 3, packed.probs).is_finite);
      CHECK(std::count(packed.codes.begin(), packed.codes.end(), 0) == 40);
    }
  }
  Packed flat(40);
  const std::vector<float> equal(40, 2.5f);
  CHECK(std::fabs(scorer.score_and_pack(equal, 3, flat.probs).nll - std::log(40.0)) < 1e-6);
  CHECK(std::fabs(scorer.score(equal, 3, flat.probs, kUnknown).kl) < 1e-6);
}

TEST_CASE("perplexity: every instruction set gives the same score bits") {
  const quant::IsaSet here = quant::built_isas() & quant::detect_isas();
  const std::vector<float> base = random_logits(777, 11, 3.0f);
  const std::vector<float> other = random_logits(777, 12, 3.0f);
  Packed packed(777);
  TokenScorer reference(scalar_kernels(), 777);
  reference.score_and_pack(base, 5, packed.probs);
  const TokenScore expected = reference.score(other, 5, packed.probs, kUnknown);
  for (const quant::Isa isa : {quant::Isa::scalar, quant::Isa::avx2}) {
    if (!here.has(isa)) continue;
    TokenScorer scorer(quant::row_kernels(isa), 777);
    const TokenScore score = scorer.score(other, 5, packed.probs, kUnknown);
    CHECK(score.nll == expected.nll);
    CHECK(score.kl == expected.kl);
  }
}

TEST_CASE("perplexity: statistics by hand") {
  ScoreStatistics statistics;
  std::vector<TokenScore> scores;
  for (int i = 0; i < 12; ++i) {
    TokenScore score;
    score.nll = i % 2 == 0 ? 1.0 : 3.0;  // mean 2, variance 1
    score.base_nll = score.nll - 0.5;    // fully correlated
    score.kl = i;
    score.p_difference = i % 2 == 0 ? 0.25 : -0.25;
    score.same_top = i % 3 == 0;
    scores.push_back(score);
  }
  statistics.add(scores);
  const double error = std::sqrt(1.0 / 11);
  CHECK(statistics.perplexity().value == Approx(std::exp(2.0)));
  CHECK(statistics.perplexity().error == Approx(std::exp(2.0) * error));
  const Divergence divergence = statistics.divergence();
  CHECK(divergence.base_perplexity.value == Approx(std::exp(1.5)));
  CHECK(divergence.log_ratio.value == Approx(0.5));
  CHECK(divergence.log_ratio.error < 1e-7);
  CHECK(divergence.log_correlation == Approx(1.0));
  CHECK(divergence.ratio.value == Approx(std::exp(0.5)));
  CHECK(divergence.difference.value == Approx(std::exp(2.0) - std::exp(1.5)));
  CHECK(divergence.kl.value == Approx(5.5));
  CHECK(divergence.kl_tails.max == 11);
  CHECK(divergence.kl_tails.median == Approx(5.5));
  CHECK(divergence.kl_tails.p90 == Approx(9.9));
  CHECK(divergence.p_difference.value == Approx(0.0));
  CHECK(divergence.p_difference_rms.value == Approx(0.25));
  CHECK(divergence.same_top.value == Approx(4.0 / 12));
  CHECK(divergence.same_top.error == Approx(std::sqrt(4.0 / 12 * 8.0 / 12 / 11)));
  CHECK(tails_of({}).max == 0);
  CHECK(tails_of({3.0f}).p99 == 3);
}

TEST_CASE("perplexity: a file of saved logits by hand, and damaged ones") {
  const TempDir folder;
  const LogitsHeader header{.context = 4, .vocabulary = 3, .chunks = 2};  // one scored position
  CHECK(header.scored_per_chunk() == 1);
  CHECK(header.row_fields() == 8);
  const std::vector<TokenId> tokens = {0, 1, 2, 0, 2, 2, 1, 1};
  const auto path = folder.path() / "saved";
  {
    LogitsWriter writer(path, header, tokens);
    for (const std::uint16_t first : {std::uint16_t{100}, std::uint16_t{200}}) {
      std::vector<std::uint16_t> row(8, 0xffff);
      std::vector<std::uint16_t> codes = {first, 7, 9};
      std::copy(codes.begin(), codes.end(), row.begin() + 4);
      store_row({0.5f, -3.0f, std::span(row).subspan(4, 3)}, row);
      TokenScore score;
      score.nll = first;
      writer.append(row, {&score, 1});
    }
    CHECK_FALSE(std::filesystem::exists(path));
    writer.commit();
  }
  std::string bytes = TempDir::read(path);
  const std::size_t public_bytes = 8 + 12 + 8 * 4 + 2 * 16;
  CHECK(bytes.size() == public_bytes + 8 + 2 * 8);
  CHECK(bytes.substr(0, 12) == std::string("_logits_\4\0\0\0", 12));
  const LogitsReader reader(path);
  CHECK(reader.header().chunks == 2);
  CHECK(reader.tokens() == tokens);
  std::vector<std::uint16_t> row(8);
  reader.read(1, 0, row);
  const PackedLogProbs packed = load_row(row, 3);
  CHECK(packed.at(0) == 97.0f);
  CHECK(packed.at(2) == 1.5f);
  CHECK(row[7] == 0);
  CHECK(reader.nll() == std::vector<double>{100, 200});
  // As the public tool writes it.
  const LogitsReader short_reader(folder.write("short", bytes.substr(0, public_bytes)));
  CHECK(short_reader.nll().empty());
  CHECK(short_reader.tokens() == tokens);

  CHECK(error_of(folder.path() / "none").substr(0, 3) == "66 ");
  CHECK(error_of(folder.path()).substr(0, 3) == "65 ");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    if (cut == public_bytes) continue;
    CHECK(error_of(folder.write("cut", bytes.substr(0, cut))).substr(0, 3) == "65 ");
  }
  CHECK(error_of(folder.write("long", bytes + "x")).substr(0, 3) == "65 ");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {  // never a crash, never an absurd allocation
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    error_of(folder.write("damaged", damaged));
  }
}

TEST_CASE("perplexity: the same bits for any threads, slots and step sizes") {
  const TempDir folder;
  write_tiny_model(folder.path() / "model.gguf", quant::Format::q8_0);
  const std::vector<TokenId> tokens = some_tokens(5 * 24 + 7);
  const EvaluationText text = EvaluationText::cut(tokens, 24, 0);
  CHECK(text.chunks == 5);
  CHECK(text.tokens.size() == 120);
  std::uint64_t expected = 0;
  std::string expected_file;
  double expected_perplexity = 0;
  for (const unsigned threads : {1u, 3u}) {
    const Model model = Model::load(make_engine(threads), folder.path() / "model.gguf");
    for (const std::size_t step : {1u, 5u, 23u, 24u, 47u, 72u, 512u}) {
      CAPTURE(threads, step);
      SessionOptions options = session_options(model, 24, KvType::f32);
      options.max_batch = step;
      options.slots = std::max<std::size_t>(1, step / 24);
      Session session(model, options);
      const auto path = folder.path() / "saved";
      NoObserver observer;
      LogitsWriter writer(path, text.header(300), text.tokens);
      const Evaluation saved =
          evaluate_text(session, text, nullptr, &writer, observer.stop, observer);
      writer.commit();
      CHECK(observer.chunks == 5);
      CHECK(saved.statistics.count() == 5 * 11);
      CHECK(saved.tokens == 5 * 23);
      if (expected == 0) {
        expected = saved.logits_hash;
        expected_file = TempDir::read(path);
        expected_perplexity = saved.statistics.perplexity().value;
      }
      CHECK(saved.logits_hash == expected);
      CHECK(TempDir::read(path) == expected_file);
      const LogitsReader base(path);
      const Evaluation compared = evaluate_text(session, EvaluationText::of(base, 3), &base,
                                                nullptr, observer.stop, observer);
      CHECK(compared.statistics.count() == 3 * 11);
      CHECK(std::fabs(compared.statistics.divergence().kl.value) < 1e-5);
      CHECK(compared.statistics.divergence().same_top.value == 1.0);
      CHECK(compared.statistics.divergence().log_ratio.value == 0.0);
    }
  }
  CHECK(std::isfinite(expected_perplexity));
}

TEST_CASE("perplexity: a text too short, and a run stopped") {
  const TempDir folder;
  write_tiny_model(folder.path() / "model.gguf", quant::Format::q8_0);
  const Model model = Model::load(make_engine(1), folder.path() / "model.gguf");
  CHECK_THROWS_AS(EvaluationText::cut(some_tokens(47), 24, 0), Error);
  const EvaluationText text = EvaluationText::cut(some_tokens(200), 8, 0);
  Session session(model, session_options(model, 8, KvType::f32));
  NoObserver observer;
  observer.stop_after = 1;
  // All chunks fit one step: the flag is seen before the next.
  SessionOptions small = session_options(model, 8, KvType::f32);
  small.max_batch = 8;
  small.slots = 1;
  Session slow(model, small);
  CHECK_THROWS_AS(evaluate_text(slow, text, nullptr, nullptr, observer.stop, observer), Error);
  CHECK(observer.chunks == 1);
}
