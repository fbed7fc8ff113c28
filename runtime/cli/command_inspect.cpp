// `lockstep inspect`: what is in a model file, or what this machine offers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/inspect.h"
#include "runtime/cli/machine_report.h"
#include "runtime/cli/memory_report.h"
#include "runtime/cli/options.h"
#include "runtime/cli/units.h"
#include "runtime/gguf.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter = R"(Examples:
  lockstep inspect                      the embedded model
  lockstep inspect model.gguf --json
  lockstep inspect --machine            topology, thread budget, placement, kernels
  lockstep inspect --machine --threads 4 --isa scalar
  lockstep inspect model.gguf --residency --numa interleave
)";

struct Inspect {
  std::string file, model;
  EngineArguments engine;
  SessionArguments session;
  bool machine = false, json = false, residency = false;

  int run() const;
  int show_residency() const;
};

// Loads the model, decodes a few tokens and asks the system where everything lies.
int Inspect::show_residency() const {
  const Engine team = engine.create();
  const Model loaded = load_model(team, model_path(file.empty() ? model : file));
  SessionOptions options = session.resolve(loaded.info(), 1);
  Session state(loaded, options);
  constexpr std::size_t kMostTokens = 512;
  std::vector<BatchEntry> batch;
  for (std::size_t i = 0; i < std::min(options.context, kMostTokens); ++i) {
    batch.push_back({1, static_cast<std::int32_t>(i), 0, false});
  }
  state.evaluate(batch);
  const MemoryReport weights = loaded.memory();
  const MemoryReport cache = state.cache_memory();
  if (json) {
    const nlohmann::ordered_json report = {{"numa_policy", name_of(team.numa())},
                                           {"threads", team.threads()},
                                           {"workers", machine_json(team)["placement"]["workers"]},
                                           {"memory_binding", memory_binding()},
                                           {"numa_balancing", numa_balancing()},
                                           {"remote_bytes_per_token", weights.remote()},
                                           {"load_bytes", loaded.info().load_bytes},
                                           {"load_seconds", loaded.info().load_seconds},
                                           {"weights", memory_json(weights)},
                                           {"cache", memory_json(cache)},
                                           {"cache_tokens", batch.size()}};
    print(report.dump(2) + "\n");
    return 0;
  }
  print(
      fmt::format("policy {}, {} threads, NUMA balancing {}; read {}\n{}\n{} after {} tokens\n"
                  "remote bytes per token: {}\n",
                  name_of(team.numa()), team.threads(), numa_balancing(),
                  humane_rate(loaded.info().load_bytes, loaded.info().load_seconds),
                  memory_text("weights", weights), memory_text("cache", cache), batch.size(),
                  grouped(weights.remote())));
  return 0;
}

int Inspect::run() const {
  if (machine) {
    const Engine team = engine.create();
    print(json ? machine_json(team).dump(2) + "\n" : machine_text(team));
    return 0;
  }
  if (residency) return show_residency();
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
  CLI::Option* machine =
      app->add_flag("--machine", self->machine, "The machine instead of a model")->excludes(file);
  app->add_flag("--residency", self->residency,
                "Load the model, run it, and show where its pages and those of a cache are")
      ->excludes(machine);
  self->session.add_to(*app);
  app->add_flag("--json", self->json, "As one JSON object");
  self->engine.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
