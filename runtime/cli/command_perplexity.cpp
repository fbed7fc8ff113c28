// `lockstep perplexity`: how well a model predicts a text, and how far a quantized one is from the
// model it came from. The measuring itself is runtime/evaluate/.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/evaluation_report.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/stop_signals.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/evaluate/perplexity.h"

namespace lockstep::cli {

namespace {

constexpr std::size_t kDefaultContext = 512;

constexpr const char* kFooter =
    R"(The text is cut into chunks of --ctx tokens, each evaluated on its own; the second half of every
chunk is scored. Definitions and the file of saved logits are those of llama.cpp's perplexity tool,
so figures compare and files may be exchanged.

Examples:
  lockstep perplexity model-f16.gguf text.txt
  lockstep perplexity model-f16.gguf text.txt --save-logits f16.logits
  lockstep perplexity model-q4.gguf --kl-base f16.logits
)";

class Progress final : public evaluate::EvaluationObserver {
 public:
  explicit Progress(bool has_base) : has_base_(has_base) {}

  void on_chunks(std::size_t done, std::size_t total,
                 const evaluate::ScoreStatistics& so_far) override {
    if (done == total) return;
    const double now = watch_.seconds();
    shown_.show(now, [&] { return evaluation_progress(done, total, so_far, has_base_, now); });
  }

  double seconds() const { return watch_.seconds(); }

 private:
  bool has_base_;
  Stopwatch watch_;
  PacedProgress shown_;
};

struct Perplexity {
  std::string model, text, base, save, kv_type = "f32";
  EngineArguments engine;
  std::size_t context = 0, chunks = 0;
  bool json = false, force = false;

  int run() const;
  void check_options() const;
  evaluate::EvaluationText choose_text(const Model& loaded,
                                       const evaluate::LogitsReader* reader) const;
};

void Perplexity::check_options() const {
  if (text.empty() && base.empty()) {
    throw Error(ErrorCode::usage, "no TEXT to evaluate (see lockstep perplexity --help)");
  }
  if (!save.empty()) require_output(save, force);
}

// The text of the reference run, which TEXT must repeat if it is given, or TEXT itself.
evaluate::EvaluationText Perplexity::choose_text(const Model& loaded,
                                                 const evaluate::LogitsReader* reader) const {
  std::vector<TokenId> tokens;
  if (!text.empty()) tokens = loaded.tokenizer().encode(read_text_file(text));
  if (!reader) {
    const std::size_t wanted =
        context != 0 ? context : std::min(kDefaultContext, loaded.info().context);
    return evaluate::EvaluationText::cut(std::move(tokens), wanted, chunks);
  }
  const evaluate::LogitsHeader& header = reader->header();
  if (header.vocabulary != loaded.info().vocabulary) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: was saved with a vocabulary of {}, the model has {}", base,
                            header.vocabulary, loaded.info().vocabulary));
  }
  if (context != 0 && context != header.context) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: was saved with --ctx {}, not {}", base, header.context, context));
  }
  const std::vector<TokenId>& saved = reader->tokens();
  if (!text.empty() &&
      (tokens.size() < saved.size() || !std::equal(saved.begin(), saved.end(), tokens.begin()))) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: was saved for another text than {}", base, text));
  }
  return evaluate::EvaluationText::of(*reader, chunks);
}

int Perplexity::run() const {
  check_options();
  std::optional<evaluate::LogitsReader> reader;
  if (!base.empty()) reader.emplace(base);
  const Engine team = engine.create();
  const Model loaded = load_model(team, model_path(model));
  const evaluate::EvaluationText tokens = choose_text(loaded, reader ? &*reader : nullptr);
  if (tokens.context > loaded.info().context) {
    show_warning(fmt::format("the model was trained with a context of {}, chunks have {}",
                             loaded.info().context, tokens.context));
  }
  std::optional<evaluate::LogitsWriter> writer;
  if (!save.empty()) {
    writer.emplace(save, tokens.header(loaded.info().vocabulary), tokens.tokens);
  }
  Session session(loaded,
                  evaluate::session_options(loaded, tokens.context, kv_type_named(kv_type)));
  const StopSignals signals(session.cancel_flag());
  Progress progress(reader.has_value());
  const evaluate::Evaluation result =
      evaluate::evaluate_text(session, tokens, reader ? &*reader : nullptr,
                              writer ? &*writer : nullptr, signals.stop(), progress);
  if (writer) writer->commit();
  clear_status();
  const EvaluationContext run{.model = model,
                              .text = text,
                              .base = base,
                              .kv_type = kv_type,
                              .isa = std::string(team.isa()),
                              .context = tokens.context,
                              .chunks = tokens.chunks,
                              .threads = team.threads(),
                              .seconds = progress.seconds()};
  if (reader && reader->nll().empty()) {
    show_note(
        "the base was saved by another program: its perplexity, and what is compared with it, "
        "takes no token for rarer than e^-16 times the likeliest");
  }
  print(json ? evaluation_json(result, run) : evaluation_table(result, run));
  show_note(fmt::format("{} chunks of {} tokens, {} scored, in {:.1f} s: {:.0f} tokens/s",
                        tokens.chunks, tokens.context, result.statistics.count(), run.seconds,
                        static_cast<double>(result.tokens) / run.seconds));
  return 0;
}

}  // namespace

Command add_perplexity(CLI::App& root) {
  const auto self = std::make_shared<Perplexity>();
  CLI::App* app = root.add_subcommand(
      "perplexity", "Measure how well a model predicts a text, or how far it is from another");
  app->add_option("MODEL", self->model, "GGUF model file")->type_name("")->required();
  app->add_option("TEXT", self->text, "Text file; may be left out with --kl-base")->type_name("");
  app->add_option("-c,--ctx", self->context,
                  fmt::format("Tokens per chunk, at least 4; default {} or what the model was\n"
                              "trained with, if that is less",
                              kDefaultContext))
      ->type_name("N")
      ->check(whole_number(4, 1u << 24));
  app->add_option("--chunks", self->chunks, "Evaluate the first N chunks; 0 (default): all")
      ->type_name("N")
      ->check(whole_number(0, 0x7fffffff));
  CLI::Option* save =
      app->add_option("--save-logits", self->save, "Save this run as a base for others")
          ->type_name("FILE");
  app->add_option("--kl-base", self->base, "Compare with a saved run: KL divergence and more")
      ->type_name("FILE")
      ->excludes(save);
  add_kv_type_option(*app, self->kv_type);
  app->add_flag("--force", self->force, "Replace the file of --save-logits if it exists")
      ->needs(save);
  app->add_flag("--json", self->json, "Print JSON");
  self->engine.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
