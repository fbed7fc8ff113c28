// Perplexity and KL divergence against the public tool's own figures for the same files and text.
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/evaluate/perplexity.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/shared.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::evaluate;
using namespace lockstep::test;

namespace {

class NoObserver final : public EvaluationObserver {
 public:
  void on_chunks(std::size_t, std::size_t, const ScoreStatistics&) override {}
  std::atomic<bool> stop{false};
};

}  // namespace

TEST_CASE("golden: perplexity and KL divergence beside the public tool's own") {
  LOCKSTEP_SHARED_OR_SKIP(golden, "golden/model_golden.json");
  LOCKSTEP_SHARED_OR_SKIP(eval, "models/storyteller/eval.txt");
  const auto figures = nlohmann::json::parse(TempDir::read(golden))["models"];
  const Engine engine = make_engine(2);
  const TempDir folder;
  const auto base_path = folder.path() / "f16.logits";
  const struct {
    const char* format;
    double allowed;  // times the reference's KL divergence
  } formats[] = {
      {"f16", 0},  // first: the base of the others
      {"q8_0", 1},
      {"q4_0", 1},
      {"q4_1", 1},
      {"q2_k", 1},
      {"q4_k", 1},
      {"q5_k", 1},
      {"q6_k", 1},
      {"iq4_xs", 1},
      // Measured above the reference by 0.02 to 1.3 %. Rounding of activations moves the loss
      // either way, by as much as that for the formats above; whether it is all of it here is not
      // proved.
      {"q5_0", 1.02},
      {"q5_1", 1.02},
      {"q3_k", 1.02},
      {"iq4_nl", 1.02},
  };
  for (const auto& [format, allowed] : formats) {
    CAPTURE(format);
    const std::string name = "models/storyteller/storyteller-" + std::string(format) + ".gguf";
    LOCKSTEP_SHARED_OR_SKIP(file, name);
    const auto expected = [&](const char* figure) {
      return figures.at(name).at(figure).get<double>();
    };
    const Model model = Model::load(engine, file);
    const EvaluationText text =
        EvaluationText::cut(model.tokenizer().encode(TempDir::read(eval)), 256, 0);
    Session session(model, session_options(model, 256, KvType::f32));
    NoObserver observer;
    if (allowed == 0) {
      LogitsWriter writer(base_path, text.header(model.info().vocabulary), text.tokens);
      const ScoreStatistics statistics =
          evaluate_text(session, text, nullptr, &writer, observer.stop, observer).statistics;
      writer.commit();
      CHECK(statistics.perplexity().value == Approx(expected("ppl")).epsilon(1e-4));
      CHECK(statistics.perplexity().error == Approx(expected("ppl_err")).epsilon(1e-3));
      continue;
    }
    const LogitsReader base(base_path);
    const ScoreStatistics statistics =
        evaluate_text(session, text, &base, nullptr, observer.stop, observer).statistics;
    const Divergence divergence = statistics.divergence();
    CHECK(divergence.base_perplexity.value == Approx(2.5267).epsilon(1e-4));
    CHECK(statistics.perplexity().value == Approx(expected("ppl")).epsilon(0.005));
    // The reference prints six digits.
    CHECK(divergence.kl.value <= allowed * expected("mean_kl") + 0.5e-6);
    // One token in a hundred: their number is small, and so is what can be said of it.
    CHECK(divergence.kl_tails.p99 == Approx(expected("kl_99")).epsilon(0.3));
    CHECK(100 * divergence.same_top.value == Approx(expected("same_top_p")).margin(1));
  }
}
