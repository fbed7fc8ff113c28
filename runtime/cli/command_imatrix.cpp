// `lockstep imatrix`: a model reads a text, and what its matrices are multiplied with becomes an
// importance matrix for `lockstep quantize`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lockstep/lockstep.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/stop_signals.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/quantize/collect.h"

namespace lockstep::cli {

namespace {

constexpr std::size_t kDefaultContext = 512;

constexpr const char* kFooter =
    R"(The text is tokenized as a whole and cut into chunks of --ctx tokens; what is left is dropped.
A few hundred chunks of text like that which the model will see are enough.

Examples:
  lockstep imatrix model-f16.gguf text.txt model.imatrix.gguf
  lockstep quantize --imatrix model.imatrix.gguf model-f16.gguf model-q3_k_m.gguf Q3_K_M
)";

struct Imatrix {
  std::string model, text, output;
  std::size_t context = 0, chunks = 0;
  EngineArguments engine;
  bool force = false, process_output = false;

  int run() const;
};

int Imatrix::run() const {
  require_output(output, force);
  const std::string content = read_text_file(text);
  const Engine team = engine.create();
  const Model loaded = load_model(team, model);
  quantize::CollectOptions options;
  options.context = context != 0 ? context : std::min(loaded.info().context, kDefaultContext);
  options.chunks = chunks;
  options.output = process_output;
  if (options.context > loaded.info().context) {
    show_warning(fmt::format("the model was trained with {} positions, chunks of {} are longer",
                             loaded.info().context, options.context));
  }
  const Stopwatch watch;
  std::atomic<bool> second_signal{false};  // a step is short, and nothing is kept
  const StopSignals signals(second_signal);
  quantize::CollectHooks hooks;
  hooks.stop = &signals.stop();
  PacedProgress progress;
  hooks.progress = [&](std::size_t done, std::size_t total) {
    const double now = watch.seconds();
    progress.show(now, [&] {
      const double left = now / static_cast<double>(done) * static_cast<double>(total - done);
      return fmt::format("{} of {} chunks, ETA {:.0f} s", done, total, left);
    });
  };
  const quantize::ImportanceMatrix matrix =
      quantize::collect_importance(loaded, content, text, options, hooks);
  matrix.save(output);
  const double took = watch.seconds();
  show_note(fmt::format("{}: {} matrices, {} chunks of {} tokens in {:.2f} s, {:.0f} tok/s; {} {}",
                        output, matrix.entries.size(), matrix.chunk_count, matrix.chunk_size, took,
                        static_cast<double>(matrix.chunk_count) * matrix.chunk_size / took,
                        team.threads(), team.threads() == 1 ? "thread" : "threads"));
  return 0;
}

}  // namespace

Command add_imatrix(CLI::App& root) {
  const auto self = std::make_shared<Imatrix>();
  CLI::App* app =
      root.add_subcommand("imatrix", "Collect an importance matrix for quantize from a text");
  app->add_option("MODEL", self->model, "GGUF model, F16 or so")->type_name("")->required();
  app->add_option("TEXT", self->text, "The text, UTF-8")->type_name("")->required();
  app->add_option("OUT", self->output, "The matrix to make, GGUF")->type_name("")->required();
  app->add_option("-c,--ctx", self->context,
                  fmt::format("Tokens of a chunk; default: {}, or what the model was\ntrained with "
                              "if that is less",
                              kDefaultContext))
      ->type_name("N")
      ->check(whole_number(1, 1u << 20));
  app->add_option("--chunks", self->chunks, "Chunks at most; 0 (default): all")
      ->type_name("N")
      ->check(whole_number(0, 0x7fffffff));
  app->add_flag("--process-output", self->process_output,
                "The output matrix too (slower; quantize does without it)");
  self->engine.add_to(*app);
  app->add_flag("--force", self->force, "Replace OUT if it exists");
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
