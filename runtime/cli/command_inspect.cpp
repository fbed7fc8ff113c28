// `lockstep inspect`: what is in a model file, or what this machine offers.
#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/inspect.h"
#include "runtime/cli/machine_report.h"
#include "runtime/cli/options.h"
#include "runtime/gguf.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter = R"(Examples:
  lockstep inspect                      the embedded model
  lockstep inspect model.gguf --json
  lockstep inspect --machine            topology, thread budget, placement, kernels
  lockstep inspect --machine --threads 4 --isa scalar
)";

struct Inspect {
  std::string file, model;
  EngineArguments engine;
  bool machine = false, json = false;

  int run() const;
};

int Inspect::run() const {
  if (machine) {
    const Engine team = engine.create();
    print(json ? machine_json(team).dump(2) + "\n" : machine_text(team));
    return 0;
  }
  const GgufFile opened = GgufFile::open(model_path(file.empty() ? model : file));
  print(json ? inspect_json(opened).dump(2) + "\n" : inspect_text(opened));
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& root) {
  const auto self = std::make_shared<Inspect>();
  CLI::App* app =
      root.add_subcommand("inspect", "Show what a model file holds, or what the machine offers");
  auto* file = app->add_option("FILE", self->file,
                               "GGUF model file (default: the embedded storyteller model)")
                   ->type_name("");
  app->add_option("-m,--model", self->model, "The same, as an option")
      ->type_name("FILE")
      ->excludes(file);
  app->add_flag("--machine", self->machine, "The machine instead of a model")->excludes(file);
  app->add_flag("--json", self->json, "As one JSON object");
  self->engine.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
