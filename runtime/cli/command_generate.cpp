// `lockstep generate`: one prompt, one answer, streamed to stdout. Also the shortest complete use
// of the public API.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/batch/prompt.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/starvation.h"
#include "runtime/fingerprint.h"
#include "runtime/sampler.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter =
    R"(Without --chat the prompt is continued as it stands: BOS in front if the model asks for one,
special tokens like <|user|> recognised. Text from standard input loses one final line end.

Examples:
  lockstep generate --max-tokens 40 "Once upon a time"
  lockstep generate --chat "Tell me a story about an owl who lost a lantern."
  lockstep generate --chat --temperature 0.8 --top-p 0.95 --seed 7 < question.txt
  lockstep generate --ids --max-tokens 16 "Once upon a time"
)";

struct Generate {
  std::string model, prompt, system;
  CLI::Option* prompt_option = nullptr;
  CLI::Option* system_option = nullptr;
  EngineArguments engine;
  SessionArguments session;
  SamplingArguments sampling;
  ChatArguments chat_arguments;
  PlanArguments plan;
  ProfileArguments profile;
  bool chat = false, ids = false, logits_hash = false, ignore_end = false;

  int run() const;
  std::vector<TokenId> prompt_tokens(const Model& model) const;
};

// Evaluates the whole prompt, in batches of what the session takes.
void prefill(Session& session, const std::vector<TokenId>& tokens) {
  std::vector<BatchEntry> batch;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    batch.push_back({tokens[i], static_cast<std::int32_t>(i), 0, i + 1 == tokens.size()});
    if (batch.size() == session.options().max_batch || i + 1 == tokens.size()) {
      session.evaluate(batch);
      batch.clear();
    }
  }
}

std::vector<TokenId> Generate::prompt_tokens(const Model& loaded) const {
  const std::string text = text_argument(*prompt_option, prompt);
  if (!chat) return batch::text_tokens(loaded.tokenizer(), text);
  std::optional<std::string_view> first;
  if (system_option->count() > 0) first = system;
  return batch::chat_tokens(loaded.tokenizer(),
                            chat_arguments.load(loaded.tokenizer(), loaded.info().chat_template),
                            simple_chat(text, first));
}

int Generate::run() const {
  sampling.check();
  plan.check();
  profile.check();
  const Engine team = plan.create(engine);
  const Model loaded = load_model(team, model_path(model));
  const std::vector<TokenId> tokens = prompt_tokens(loaded);
  SessionOptions options = session.resolve(loaded.info(), 1);
  plan.apply(options);
  profile.apply(options);
  if (tokens.empty()) {
    throw Error(ErrorCode::bad_input,
                "the prompt is empty and the model has no BOS token to start from");
  }
  if (tokens.size() + 1 > options.context) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "the prompt has {} tokens and needs room for at least 1 more; the context holds {}",
            tokens.size(), options.context));
  }
  Session state(loaded, options);
  Sampler sampler(sampling.params, tokens);
  Utf8Stream stream;
  Fingerprint hash;
  const std::size_t room = options.context - tokens.size();
  const std::size_t limit = sampling.max_tokens == 0 ? room : std::min(room, sampling.max_tokens);
  prefill(state, tokens);
  // What follows the logits of the step before: the next token, or nothing when all is said.
  std::size_t n = 0;
  BatchEntry next;
  state.evaluate_each([&]() -> std::span<const BatchEntry> {
    const std::span<const float> logits = state.logits(0);
    hash.add(logits);
    const std::optional<Choice> choice = sampler.sample(logits);
    if (!choice) throw Error(ErrorCode::bad_model, "the model gave NaN or infinite logits");
    const TokenId token = choice->token;
    if (ids) print(fmt::format("{}{}", n == 0 ? "" : ",", token));
    if (loaded.tokenizer().ends_generation(token) && !ignore_end) return {};
    if (!ids) print(stream.push(loaded.tokenizer().piece(token)));
    if (++n == limit) return {};
    next = {token, static_cast<std::int32_t>(state.length(0)), 0, true};
    return {&next, 1};
  });
  print(ids ? "\n" : stream.flush() + "\n");
  profile.report(state);
  note_starvation(team);
  if (logits_hash) show_note(fmt::format("logits hash {:016x}", hash.value()));
  return 0;
}

}  // namespace

Command add_generate(CLI::App& root) {
  const auto self = std::make_shared<Generate>();
  CLI::App* app =
      root.add_subcommand("generate", "Continue a prompt or answer a message, as a stream");
  self->prompt_option =
      app->add_option("PROMPT", self->prompt, "The prompt (default: standard input)")
          ->type_name("");
  add_model_option(*app, self->model);
  CLI::Option* chat =
      app->add_flag("--chat", self->chat, "The prompt as a user's message in the chat template");
  self->system_option =
      app->add_option("--system", self->system, "System message to put in front (with --chat)")
          ->type_name("TEXT")
          ->needs(chat);
  self->chat_arguments.add_to(*app, chat);
  self->sampling.add_to(*app);
  self->session.add_to(*app);
  self->engine.add_to(*app);
  app->add_flag("--ids", self->ids,
                "Print the generated token ids, comma-separated, instead of text");
  app->add_flag("--ignore-end", self->ignore_end, "Go on after end tokens until --max-tokens");
  app->add_flag("--logits-hash", self->logits_hash,
                "Show on stderr a hash of all logits: equal hashes mean equal bits");
  self->plan.add_to(*app);
  self->profile.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
