// The subcommands of `lockstep`. Each lives in its own file and adds itself to the command line;
// main() runs the one that was asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lockstep::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code; throws lockstep::Error
};

Command add_batch(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_generate(CLI::App& root);
Command add_tokenize(CLI::App& root);
Command add_topology(CLI::App& root);
Command add_inspect(CLI::App& root);
Command add_merge(CLI::App& root);
Command add_plan(CLI::App& root);
Command add_perplexity(CLI::App& root);
Command add_quantize(CLI::App& root);
Command add_imatrix(CLI::App& root);

// The work is done, but some rows are error rows, or missing where that was allowed.
inline constexpr int kExitSomeErrorRows = 1;

}  // namespace lockstep::cli
