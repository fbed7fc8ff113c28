// Shared options: see options.h.
#include "runtime/cli/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <system_error>

#include "quant/isa.h"
#include "runtime/cli/console.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/profile_report.h"
#include "runtime/cli/units.h"
#include "runtime/fusions.h"
#include "topology/placement.h"

namespace lockstep::cli {

namespace {

// Without --ctx a long-context model does not get a cache of its full length for every slot: 128 k
// positions times 8 slots would not fit into most machines.
constexpr std::size_t kDefaultContextLimit = 4096;

constexpr std::uint64_t kMaxInt = 0x7fffffff;

constexpr const char* kEmbeddedModel = "share/lockstep/storyteller-f16.gguf";

// `stop`: a std::atomic<bool>, or null.
void show_load_progress(void* stop, std::uint64_t done, std::uint64_t total) {
  if (stop != nullptr && static_cast<const std::atomic<bool>*>(stop)->load()) {
    throw Error(ErrorCode::interrupted, "stopped by a signal while the model was loaded");
  }
  if (total == 0 || !stderr_is_terminal()) return;
  const double gigabytes = static_cast<double>(total) / 1e9;
  show_status(fmt::format("loading {:.2f} GB: {} %", gigabytes, done * 100 / total));
}

}  // namespace

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [last, status] = std::from_chars(text.data(), end, value);
    const bool is_plain =
        status == std::errc{} && last == end && (text.size() == 1 || text[0] != '0');
    if (is_plain && value >= low && value <= high) return {};
    return fmt::format("must be a whole number of {} to {}, not \"{}\"", low, high, text);
  };
  return CLI::Validator(check, "");
}

void EngineArguments::add_to(CLI::App& app) {
  app.add_option("-t,--threads", threads,
                 "Worker threads; 0 (default): the thread budget from affinity\n"
                 "mask, cgroup CPU quota and physical cores (see inspect --machine)")
      ->type_name("N")
      ->check(whole_number(0, kMaxInt));
  app.add_option("--isa", isa, "Force an instruction set (default: LOCKSTEP_ISA, else the best)")
      ->type_name("NAME");
  placement.add_to(app);
}

Engine EngineArguments::create() const {
  EngineOptions options;
  options.threads = threads;
  options.isa = isa;
  placement.apply(options);
  const RankPlacement rank = place_rank(options, sharers);
  if (!rank.note.empty()) show_note(rank.note);
  if (!rank.warning.empty()) show_warning(rank.warning);
  Engine engine = Engine::create(options);
  for (const std::string& warning : engine.warnings()) show_warning(warning);
  return engine;
}

void SamplingArguments::add_to(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens,
                 "Tokens to generate at most; 0 (default): what fits the context")
      ->type_name("N")
      ->check(whole_number(0, kMaxInt));
  app.add_option("--temperature", params.temperature,
                 "0 to 100; 0 (default) is greedy: always the likeliest token")
      ->type_name("T");
  app.add_option("--top-k", params.top_k, "Sample from the K likeliest tokens; 0 (default): off")
      ->type_name("K")
      ->check(whole_number(0, kMaxInt));
  app.add_option("--top-p", params.top_p,
                 "Sample from the likeliest tokens that hold this share of the\n"
                 "probability, above 0 to 1; 1 (default): off")
      ->type_name("P");
  app.add_option("--min-p", params.min_p,
                 "Drop tokens less likely than this share of the likeliest,\n"
                 "0 to 1; 0 (default): off")
      ->type_name("P");
  app.add_option("--repeat-penalty", params.repeat_penalty,
                 "Make tokens of the prompt and the answer so far less likely, above\n"
                 "0 to 10; 1 (default): off; below 1: more likely")
      ->type_name("X");
  app.add_option("--frequency-penalty", params.frequency_penalty,
                 "Take this off a token's logit for each time that it came in the\n"
                 "answer, -2 to 2; 0 (default): off")
      ->type_name("X");
  app.add_option("--presence-penalty", params.presence_penalty,
                 "Take this off once if it came at all, -2 to 2; 0 (default): off")
      ->type_name("X");
  app.add_option("--seed", params.seed, "Seed of all random draws (default 0)")
      ->type_name("N")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
}

void SamplingArguments::add_logprobs_to(CLI::App& app) {
  app.add_option("--logprobs", params.logprobs,
                 "Write the log-probability of every token to its row, and those of\n"
                 "the N likeliest in its place, 0 to 20 (default: none)")
      ->type_name("N")
      ->check(whole_number(0, SamplingParams::kMaxLogprobs));
}

void PlanArguments::add_to(CLI::App& app) {
  app.add_option("--schedule", schedule,
                 "static: fixed rows for every worker; dynamic: ends of them for\n"
                 "whoever is done first; auto (default): where that pays")
      ->type_name("KIND")
      ->check(CLI::IsMember({"auto", "static", "dynamic"}));
  app.add_option("--no-fusion", unfused,
                 "Put this consumer behind a barrier of its own (lockstep plan names\n"
                 "the fusions); may be given again")
      ->type_name("NAME");
  app.add_flag("--reference", reference,
               "Compute with the slow scalar kernels that define what is right, one node a stage");
}

void PlanArguments::check() const {
  for (const std::string& name : unfused) check_fusion_name(name);
}

Engine PlanArguments::create(EngineArguments engine) const {
  if (reference) engine.isa = quant::name_of(quant::Isa::scalar);
  return engine.create();
}

void PlanArguments::apply(SessionOptions& options) const {
  options.schedule = schedule == "static"    ? Schedule::static_rows
                     : schedule == "dynamic" ? Schedule::dynamic
                                             : Schedule::automatic;
  options.unfused = unfused;
  options.reference = reference;
}

void ProfileArguments::add_to(CLI::App& app) {
  app.add_flag("--profile", profile, "Show on stderr where the time went, by stage and by op");
  app.add_option("--profile-trace", trace,
                 "Write a timeline for chrome://tracing or ui.perfetto.dev; implies --profile")
      ->type_name("FILE");
}

void ProfileArguments::check() const {
  if (!trace.empty()) require_replaceable(trace);
}

void ProfileArguments::report(const Session& session) const {
  if (session.profile() != nullptr) report_profile(*session.profile(), trace);
}

void add_kv_type_option(CLI::App& app, std::string& name) {
  app.add_option("--kv-type", name, "Key/value cache in f32 (default), f16 or q8_0")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "f16", "q8_0"}));
}

KvType kv_type_named(std::string_view name) noexcept {
  return name == "f16" ? KvType::f16 : name == "q8_0" ? KvType::q8_0 : KvType::f32;
}

void SessionArguments::add_to(CLI::App& app) {
  app.add_option(
         "-c,--ctx", context,
         fmt::format("Context, tokens of prompt and answer together; 0 (default): what the\n"
                     "model was trained with, at most {}",
                     kDefaultContextLimit))
      ->type_name("N")
      ->check(whole_number(0, kMaxInt));
  add_kv_type_option(app, kv_type);
}

SessionOptions SessionArguments::resolve(const ModelInfo& model, std::size_t slots) const {
  SessionOptions options;
  options.context = context != 0 ? context : std::min(model.context, kDefaultContextLimit);
  options.slots = slots;
  options.max_batch = std::max(options.max_batch, slots);
  options.kv_type = kv_type_named(kv_type);
  return options;
}

void add_model_option(CLI::App& app, std::string& path) {
  app.add_option("-m,--model", path, "GGUF model file (default: the embedded storyteller model)")
      ->type_name("FILE");
}

std::filesystem::path model_path(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path path = program.parent_path().parent_path() / kEmbeddedModel;
  if (error || !std::filesystem::exists(path, error)) {
    throw Error(
        ErrorCode::no_input,
        fmt::format("no --model given, and the embedded model is not at {}", path.string()));
  }
  return path;
}

namespace {

// An experiment with memory says beforehand how much it takes.
void note_copies(const Engine& engine, const std::filesystem::path& path) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  const unsigned nodes = engine.placement().nodes;
  if (engine.numa() != NumaPolicy::replicate || error) return;
  show_note(fmt::format("a copy of the weights on each of {} NUMA nodes: about {} in all", nodes,
                        humane_bytes(bytes * nodes)));
}

}  // namespace

Model load_model(const Engine& engine, const std::filesystem::path& path,
                 const std::atomic<bool>* stop, std::function<void(const Model&)> before_load) {
  note_copies(engine, path);
  ModelOptions options;
  options.before_load = std::move(before_load);
  options.progress = show_load_progress;
  options.progress_context = const_cast<std::atomic<bool>*>(stop);
  Model model = Model::load(engine, path, options);
  clear_status();
  return model;
}

std::string read_text_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    throw Error(ErrorCode::no_input, fmt::format("{}: cannot be read", path.string()));
  }
  return text;
}

std::string text_argument(const CLI::Option& option, const std::string& argument) {
  if (option.count() > 0) return argument;
  if (::isatty(STDIN_FILENO) != 0) {
    throw Error(ErrorCode::usage, "no text: give it as an argument or on standard input");
  }
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace lockstep::cli
