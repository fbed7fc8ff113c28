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

TEST_CASE("perplexity: the public tool's figures on the demo model") {
  LOCKSTEP_SHARED_OR_SKIP(golden, "golden/model_golden.json");
  LOCKSTEP_SHARED_OR_SKIP(eval, "models/storyteller/eval.txt");
  const auto figures = nlohmann::json::parse(TempDir::read(golden))["models"];
  const TempDir folder;
  const auto base_path = folder.path() / "f16.logits";
  // F16 first: it is the base of the others.
  for (const char* format : {"f16", "q8_0", "q4_0", "q4_k", "q6_k"}) {
    CAPTURE(format);
    const std::string name = "models/storyteller/storyteller-" + std::string(format) + ".gguf";
    LOCKSTEP_SHARED_OR_SKIP(file, name);
    const auto& expected = figures.at(name);
    const Model model = Model::load(make_engine(2), file);
    const EvaluationText text =
        EvaluationText::cut(model.tokenizer().encode(TempDir::read(eval)), 256, 0);
    Session session(model, session_options(model, 256, KvType::f32));
    NoObserver observer;
    if (std::string(format) == "f16") {
      LogitsWriter writer(base_path, text.header(model.info().vocabulary), text.tokens);
      const Evaluation result =
          evaluate_text(session, text, nullptr, &writer, observer.stop, observer);
      writer.commit();
      CHECK(result.statistics.perplexity().value ==
            Approx(expected["ppl"].get<double>()).epsilon(1e-4));
      CHECK(result.statistics.perplexity().error ==
            Approx(expected["ppl_err"].get<double>()).epsilon(1e-3));
      continue;
    }
    const LogitsReader base(base_path);
    const Divergence divergence =
        evaluate_text(session, text, &base, nullptr, observer.stop, observer)
            .statistics.divergence();
    CHECK(divergence.base_perplexity.value == Approx(2.5267).epsilon(1e-4));
    const double perplexity = divergence.base_perplexity.value * divergence.ratio.value;
    CHECK(perplexity == Approx(expected["ppl"].get<double>()).epsilon(0.005));
    CHECK(divergence.kl.value <= expected["mean_kl"].get<double>() * 1.001);
    // One token in a hundred: their number is small, and so is what can be said of it.
    CHECK(divergence.kl_tails.p99 == Approx(expected["kl_99"].get<double>()).epsilon(0.3));
    CHECK(100 * divergence.same_top.value ==
          Approx(expected["same_top_p"].get<double>()).margin(1));
  }
}
