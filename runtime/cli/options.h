// Options that several subcommands share, declared once so that they mean the same everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/lockstep.h"
#include "runtime/cli/placement_options.h"
#include "runtime/cli/rank_placement.h"
#include "runtime/sampler.h"

namespace lockstep::cli {

// Accepts a whole number of low to high in plain decimal. CLI11 2.1 alone takes "-2" for a huge
// unsigned number and "010" for 8.
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);

struct EngineArguments {
  unsigned threads = 0;
  std::string isa;
  PlacementArguments placement = {};
  std::optional<Sharers> sharers = {};  // where ranks have told each other

  void add_to(CLI::App& app);
  // Creates the engine and shows its warnings on stderr. One of several ranks on a machine takes
  // its slice of it: see place_rank().
  Engine create() const;
};

struct SamplingArguments {
  std::size_t max_tokens = 0;
  SamplingParams params;

  void add_to(CLI::App& app);
  // Adds --logprobs, for commands that write rows.
  void add_logprobs_to(CLI::App& app);
  // Throws Error(usage) for values outside their range.
  void check() const { params.check(); }
};

// How steps are planned. All choices give the same bits.
struct PlanArguments {
  std::string schedule = "auto";
  std::vector<std::string> unfused;
  bool reference = false;

  void add_to(CLI::App& app);
  // Throws Error(usage) for a fusion that does not exist.
  void check() const;
  // The engine for such plans: the reference has scalar kernels.
  Engine create(EngineArguments engine) const;
  void apply(SessionOptions& options) const;
};

// Where the time goes.
struct ProfileArguments {
  bool profile = false;
  std::string trace;

  void add_to(CLI::App& app);
  // Throws Error(cannot_create) if the timeline could not be written in the end.
  void check() const;
  void apply(SessionOptions& options) const { options.profile = wanted(); }
  bool wanted() const noexcept { return profile || !trace.empty(); }
  // Tables to stderr and the timeline to its file, if they were asked for.
  void report(const Session& session) const;
};

// Adds --kv-type; the name is one of those that kv_type_named() knows.
void add_kv_type_option(CLI::App& app, std::string& name);
KvType kv_type_named(std::string_view name) noexcept;

struct SessionArguments {
  std::size_t context = 0;
  std::string kv_type = "f32";

  void add_to(CLI::App& app);
  SessionOptions resolve(const ModelInfo& model, std::size_t slots) const;
};

// Adds --model with its default.
void add_model_option(CLI::App& app, std::string& path);
// `given`, or the embedded model that stands beside the executable:
// ../share/lockstep/storyteller-f16.gguf, in the build tree as when installed. Throws
// Error(no_input) if there is none.
std::filesystem::path model_path(const std::string& given);

// Loads the model; on a terminal the progress is shown on stderr. Throws Error(interrupted) soon
// after `stop` (if there is one) has become true. `before_load`: see ModelOptions.
Model load_model(const Engine& engine, const std::filesystem::path& path,
                 const std::atomic<bool>* stop = nullptr,
                 std::function<void(const Model&)> before_load = {});

// The whole of a file. Throws Error(no_input) if it cannot be read.
std::string read_text_file(const std::filesystem::path& path);

// `argument` if it was given, else standard input without its final line end. Throws Error(usage)
// if that is a terminal.
std::string text_argument(const CLI::Option& option, const std::string& argument);

}  // namespace lockstep::cli
