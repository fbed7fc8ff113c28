// `lockstep quantize`: from options to a plan, from a plan to a file. The work itself is
// runtime/quantize/.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/quantize_report.h"
#include "runtime/cli/stop_signals.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/gguf.h"
#include "runtime/printable.h"
#include "runtime/quantize/file_plan.h"
#include "runtime/quantize/file_writer.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter =
    R"(Types, in any case:
  F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S
  Q5_K_M Q6_K IQ4_NL IQ4_XS MXFP4 NVFP4 Q4X; Q3_K, Q4_K and Q5_K mean the _M mix

A type is a mix: the matrices where rounding costs most get a better format, by the rules of the
public quantizer. Vectors and norms stay as they are.

Examples:
  lockstep quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M
  lockstep quantize --imatrix text.imatrix.gguf model-f16.gguf model-q2_k.gguf Q2_K
  lockstep quantize --tensor-type "attn_[kv]=Q8_0" --output-type F16 in.gguf out.gguf Q4_0
  lockstep quantize --dry-run model-f16.gguf model-q5.gguf Q5_K_M
)";

struct Quantize {
  std::string input, output, type, imatrix, output_type, embedding_type;
  std::vector<std::string> tensor_types;
  EngineArguments engine;
  bool pure = false, force = false, dry_run = false, json = false;

  int run() const;
  quantize::Request request() const;
  void check_paths() const;
  double write(const GgufFile& file, const quantize::FilePlan& plan,
               const quantize::Request& request, const quantize::ImportanceSource& importance,
               const Engine& team) const;
};

quant::Format format_named(const std::string& name) {
  const quant::FormatTraits* format = quant::find_format(name);
  if (format != nullptr && quantize::is_target(format->format)) return format->format;
  throw Error(ErrorCode::usage,
              format == nullptr
                  ? fmt::format("\"{}\" is no format of a tensor (such as Q8_0, Q6_K or F16)",
                                printable(name))
                  : fmt::format("{} can be read but not written", format->name));
}

const quantize::Mix* mix_named(const std::string& name) {
  if (const quantize::Mix* mix = quantize::find_mix(name)) return mix;
  const quant::FormatTraits* format = quant::find_format(name);
  throw Error(
      ErrorCode::usage,
      fmt::format("{}; there are: {}",
                  format == nullptr ? fmt::format("unknown type \"{}\"", printable(name))
                                    : fmt::format("{} can be read but not written", format->name),
                  quantize::mix_names()));
}

quantize::Request Quantize::request() const {
  quantize::Request request;
  request.mix = mix_named(type);
  request.pure = pure;
  if (!output_type.empty()) request.output = format_named(output_type);
  if (!embedding_type.empty()) request.token_embedding = format_named(embedding_type);
  for (const std::string& rule : tensor_types) {
    const std::size_t equals = rule.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorCode::usage,
                  fmt::format("--tensor-type: \"{}\" is not REGEX=TYPE", printable(rule)));
    }
    request.overrides.push_back({rule.substr(0, equals), format_named(rule.substr(equals + 1))});
  }
  return request;
}

void Quantize::check_paths() const {
  std::error_code error;
  if (std::filesystem::equivalent(input, output, error)) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: input and output are the same file", printable(output, 4096)));
  }
  if (dry_run) return;
  require_output(output, force);
}

double Quantize::write(const GgufFile& file, const quantize::FilePlan& plan,
                       const quantize::Request& request,
                       const quantize::ImportanceSource& importance, const Engine& team) const {
  const Stopwatch watch;
  std::atomic<bool> second_signal{false};  // one is enough: nothing is kept anyway
  const StopSignals signals(second_signal);
  quantize::WriteHooks hooks;
  hooks.stop = &signals.stop();
  PacedProgress shown;
  hooks.progress = [&](const quantize::WriteProgress& progress) {
    const double now = watch.seconds();
    shown.show(now, [&] { return progress_text(progress, now); });
  };
  quantize::write_file(file, plan, request, importance, team, output, hooks);
  return watch.seconds();
}

int Quantize::run() const {
  const quantize::Request wanted = request();
  check_paths();
  const GgufFile file = GgufFile::open(input);
  std::optional<quantize::ImportanceMatrix> matrix;
  if (!imatrix.empty()) matrix = quantize::ImportanceMatrix::load(imatrix);
  const quantize::FilePlan plan = quantize::plan_file(file, wanted, matrix ? &*matrix : nullptr);
  for (const quantize::PlannedTensor& tensor : plan.tensors) {
    if (tensor.fell_back()) show_note(fallback_text(tensor));
  }
  if (plan.requantized > 0) {
    show_warning(
        fmt::format("{} tensors are quantized already and lose precision twice; a file in F16 is a "
                    "better start",
                    plan.requantized));
  }
  QuantizeRun done{input, output, 0, 0};
  const std::string missing = quantize::missing_importance(plan, wanted);
  if (dry_run) {
    if (!missing.empty()) show_warning(missing);
    print(json ? plan_json(plan, wanted, done).dump(2) + "\n" : plan_text(plan));
    return 0;
  }
  if (!missing.empty()) throw Error(ErrorCode::usage, missing);
  const Engine team = engine.create();
  done.threads = team.threads();
  done.seconds = write(file, plan, wanted, {matrix ? &*matrix : nullptr, imatrix}, team);
  show_note(summary_text(plan, wanted, done));
  if (json) print(plan_json(plan, wanted, done).dump(2) + "\n");
  return 0;
}

}  // namespace

Command add_quantize(CLI::App& root) {
  const auto self = std::make_shared<Quantize>();
  CLI::App* app = root.add_subcommand("quantize", "Make a smaller file of a model");
  app->add_option("IN", self->input, "GGUF model: F32, F16, BF16, or anything that can be decoded")
      ->type_name("")
      ->required();
  app->add_option("OUT", self->output, "The file to make")->type_name("")->required();
  app->add_option("TYPE", self->type, "What to make of it, see below")->type_name("")->required();
  app->add_option("--imatrix", self->imatrix,
                  "Importance matrix, as `lockstep imatrix` or the public\ntool writes it")
      ->type_name("FILE");
  app->add_flag("--pure", self->pure, "The same format for all matrices instead of a mix");
  app->add_option("--tensor-type", self->tensor_types,
                  "A format for the tensors whose name the pattern is found in;\n"
                  "may be repeated, the first that fits decides")
      ->type_name("REGEX=TYPE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--output-type", self->output_type, "The format of the output matrix")
      ->type_name("TYPE");
  app->add_option("--token-embedding-type", self->embedding_type,
                  "The format of the token embedding")
      ->type_name("TYPE");
  self->engine.add_to(*app);
  app->add_flag("--force", self->force, "Replace OUT if it exists");
  app->add_flag("--dry-run", self->dry_run, "Only print what would be made of each tensor");
  app->add_flag("--json", self->json, "Print plan and figures as one JSON object");
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
