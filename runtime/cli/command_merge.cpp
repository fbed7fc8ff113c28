// `lockstep merge`: the outputs of several batch jobs over one input as one file.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/batch/merge.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

namespace {

constexpr double kGraceSeconds = 10;

constexpr const char* kFooter =
    R"(Every line of the input that is not blank must have exactly one row in the parts, with its id;
the same row in two parts is kept once. The parts' job records (PART.job) must agree in model,
options and input. If anything is wrong, nothing is written.

Examples:
  lockstep merge -i requests.jsonl -o answers.jsonl answers-*.part
  lockstep merge -i requests.jsonl -o so-far.jsonl --partial rank0.jsonl rank1.jsonl
)";

struct Merge {
  std::string input, output, input_format = "auto";
  std::vector<std::string> parts;
  bool partial = false, force = false;

  int run() const;
};

int Merge::run() const {
  require_output(output, force);
  const StopSignals signals(kGraceSeconds);
  batch::MergeOptions options;
  options.input = input;
  options.output = output;
  options.format = batch::format_named(input_format, input);
  options.parts.assign(parts.begin(), parts.end());
  options.partial = partial;
  options.flags = {&signals.stop(), &signals.drop()};
  const batch::Merged merged = batch::merge_outputs(options);
  for (const std::string& note : merged.notes) show_note(note);
  const batch::Collation& rows = merged.rows;
  show_note(fmt::format("{} of {} rows ({} error rows) of {} {} are in {}", rows.rows, merged.lines,
                        rows.errors, parts.size(), parts.size() == 1 ? "part" : "parts", output));
  if (rows.missing > 0) {
    show_warning(fmt::format("{} lines have no row: {}{}", rows.missing,
                             fmt::join(rows.first_missing, ", "),
                             rows.missing > rows.first_missing.size() ? ", ..." : ""));
  }
  return rows.errors == 0 && rows.missing == 0 ? 0 : kExitSomeErrorRows;
}

}  // namespace

Command add_merge(CLI::App& root) {
  const auto self = std::make_shared<Merge>();
  CLI::App* app =
      root.add_subcommand("merge", "Join the outputs of batch jobs over one input, and check them");
  app->add_option("-i,--input", self->input, "The requests of the jobs")
      ->type_name("FILE")
      ->required();
  app->add_option("--input-format", self->input_format,
                  "jsonl, or text: each line is a prompt; auto (default): text for *.txt")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "jsonl", "text"}));
  app->add_option("-o,--output", self->output,
                  "All rows, in the order of the input; must not exist")
      ->type_name("FILE")
      ->required();
  app->add_option("PART", self->parts, "Outputs of lockstep batch")->type_name("")->required();
  app->add_flag("--partial", self->partial,
                "Write the rows that are there, though lines have none");
  app->add_flag("--force", self->force, "Replace an output that exists");
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
