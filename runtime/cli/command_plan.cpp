// `lockstep plan`: how a step of a model is going to be computed.
#include <fmt/format.h>

#include <memory>

#include "runtime/cli/bench_report.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/plan_report.h"

namespace lockstep::cli {
namespace {

constexpr const char* kFooter =
    R"(A stage ends with one barrier. Every worker computes its ranges, and what "everyone" computes as
a whole; chunks are ends of ranges that go to whoever is done first. --no-fusion and --schedule
change how, never what: the logits are the same bits.

Examples:
  lockstep plan                                one token of the embedded model
  lockstep plan -m model.gguf --tokens 512
  lockstep plan -m model.gguf --json | jq .barriers_per_layer
  lockstep plan --no-fusion gate_up --no-fusion matmul_add
)";

struct ShowPlan {
  std::string model;
  EngineArguments engine;
  SessionArguments session;
  PlanArguments plan;
  std::size_t tokens = 1;
  std::size_t logits = 1;
  bool json = false, buffers = false;

  int run() const;
};

int ShowPlan::run() const {
  plan.check();
  if (logits > tokens) {
    throw Error(ErrorCode::usage,
                fmt::format("--logits {}: there are only {} tokens", logits, tokens));
  }
  const Engine team = plan.create(engine);
  const Model loaded = load_model(team, model_path(model));
  SessionOptions options = session.resolve(loaded.info(), 1);
  options.max_batch = std::max(options.max_batch, tokens);
  plan.apply(options);
  Session state(loaded, options);
  const PlanOf of{model_type(loaded.info()), tokens, logits};
  const Plan& made = state.plan(tokens, logits);
  print(json ? plan_json(of, made).dump(2) + "\n" : plan_text(of, made, buffers));
  return 0;
}

}  // namespace

Command add_plan(CLI::App& root) {
  const auto self = std::make_shared<ShowPlan>();
  CLI::App* app =
      root.add_subcommand("plan", "Show how a step is computed: stages, splits, memory");
  add_model_option(*app, self->model);
  app->add_option("--tokens", self->tokens, "Tokens in the step (default 1: decoding)")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  app->add_option("--logits", self->logits, "How many of them want logits (default 1)")
      ->type_name("N")
      ->check(whole_number(0, 65536));
  self->plan.add_to(*app);
  self->session.add_to(*app);
  self->engine.add_to(*app);
  app->add_flag("--buffers", self->buffers,
                "Also where values lie in the arena, and from when to when");
  app->add_flag("--json", self->json, "As one JSON object, with everything");
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
