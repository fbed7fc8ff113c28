// The `lockstep` command: options, dispatch, and the one place that turns errors into exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/error.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/failure.h"
#include "runtime/cli/version.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Runs quantized GGUF language models on CPUs, bit for bit reproducibly: the same model file\n"
    "gives the same output for any number of threads and any batch mates.";

constexpr const char* kFooter = R"(Examples:
  lockstep batch --input requests.jsonl --output answers.jsonl
  lockstep merge --input requests.jsonl --output answers.jsonl rank0.jsonl rank1.jsonl
  lockstep generate --chat "Tell me a story about a fox who lost a kite."
  lockstep tokenize --pieces "Once upon a time"
  lockstep inspect model.gguf
  lockstep inspect --machine
  lockstep topology
  lockstep plan -m model.gguf
  lockstep quantize model-f16.gguf model-q4.gguf Q4_K_M
  lockstep perplexity model.gguf text.txt
  lockstep bench -m model.gguf -p 512 -n 128

Exit codes:
   0  done
   1  batch, merge: done, but some rows are error rows (merge --partial: or missing)
  64  wrong options
  65  input that cannot be used (a duplicate id), or an output that cannot be resumed or merged
      (changed model, input or options; lines without a row); nothing was changed
  66  a file that does not exist or cannot be read
  69  a model file that is damaged, inconsistent or not supported
  70  a defect of lockstep itself
  71  not enough memory or threads
  73  the output exists already, cannot be made, or is being written by another process
  74  reading or writing failed half-way (disk full); batch --resume goes on
  75  stopped by a signal; the rows that batch wrote so far are kept, batch --resume goes on
)";

// The words of the command line, last one first, as CLI11 takes them. It knows no names of several
// letters behind one dash; `bench` has some, since its options are those of llama-bench.
std::vector<std::string> arguments_of(int argc, char** argv) {
  constexpr std::string_view kOneDash[] = {"-pg", "-npp", "-ntg", "-npl"};
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!words.empty() && words.front() == "bench") {
    for (std::string& word : words) {
      for (const std::string_view name : kOneDash) {
        if (word == name) word.insert(0, "-");
      }
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run(int argc, char** argv) {
  CLI::App app{kDescription, "lockstep"};
  app.footer(kFooter);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(0, 1);
  const std::vector<Command> commands = {add_batch(app),    add_merge(app),    add_bench(app),
                                         add_generate(app), add_tokenize(app), add_inspect(app),
                                         add_quantize(app), add_imatrix(app),  add_perplexity(app),
                                         add_plan(app),     add_topology(app)};
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto chosen = app.get_subcommands();
    const std::string command =
        chosen.empty() ? "lockstep" : "lockstep " + chosen.front()->get_name();
    return show_error(ErrorCode::usage, fmt::format("{} (see {} --help)", error.what(), command));
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return show_error(ErrorCode::usage, "no command given (see lockstep --help)");
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  // A closed pipe or a file size limit shall end a write with an error that can be reported, not
  // kill us.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return lockstep::cli::run(argc, argv);
  } catch (...) {
    return lockstep::cli::show_current_exception();
  }
}
