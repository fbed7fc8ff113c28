// See batch_load.h.
#include "runtime/cli/batch_load.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "runtime/cli/console.h"
#include "runtime/cli/stopwatch.h"
#include "runtime/cli/units.h"
#include "topology/budget.h"

namespace lockstep::cli {

namespace {

// The template for the job's chats. One that cannot be used at all would turn every chat line into
// an error row: refused before any work. That it refuses one message alone is no proof of that.
ChatTemplate usable_template(const ChatArguments& arguments, const Model& model) {
  ChatTemplate chat = arguments.load(model.tokenizer(), model.info().chat_template);
  try {
    chat.render(simple_chat("x"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
  }
  return chat;
}

std::string team_text(const Engine& engine) {
  const topology::ThreadBudget& budget = engine.budget();
  if (engine.threads() == budget.threads) return budget.reason;
  return fmt::format("{} {} (budget: {})", engine.threads(),
                     engine.threads() == 1 ? "thread" : "threads", budget.reason);
}

std::string model_text(const Model& model) {
  const ModelInfo& info = model.info();
  return fmt::format("model {} ({}, {:.1f} M parameters, {:.1f} MB of weights, read {}); {}",
                     info.name.empty() ? "without a name" : for_terminal(info.name),
                     info.architecture, static_cast<double>(info.parameters) / 1e6,
                     static_cast<double>(info.weight_bytes) / 1e6,
                     humane_rate(info.load_bytes, info.load_seconds), team_text(model.engine()));
}

}  // namespace

std::unique_ptr<LoadedJob> load_job(const BatchArguments& job, const RankTeam& team,
                                    const batch::InputSurvey& survey, const StopSignals& signals) {
  const Stopwatch watch;
  EngineArguments arguments = job.engine;
  arguments.sharers = team.sharers();
  const Engine workers = arguments.create();
  SessionOptions options;
  std::optional<ChatTemplate> chat_template;
  const auto fit = [&](const Model& known) {
    if (survey.has_chat) chat_template = usable_template(job.chat, known);
    const auto& sharers = team.sharers();
    options = job.size.fit(job.session, known, sharers ? sharers->ranks : 1);
    if (job.dry_run) options.share_prefixes = true;  // what is measured is quicker to prepare
  };
  const Model weights = load_model(workers, model_path(job.model), &signals.stop(), fit);
  job.profile.apply(options);
  auto loaded = std::make_unique<LoadedJob>(
      LoadedJob{workers, weights, Session(weights, options), std::move(chat_template)});
  loaded->seconds = watch.seconds();
  show_note(team.label() + model_text(weights));
  return loaded;
}

}  // namespace lockstep::cli
