// `lockstep topology`: the machine, the workers on it and why there are so many. Looks at a
// described machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE) as well as at this one.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "ops/matrix.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/output_path.h"
#include "runtime/cli/topology_report.h"
#include "runtime/engine.h"
#include "runtime/gguf.h"

namespace lockstep::cli {
namespace {

constexpr const char* kFooter =
    R"(Workers have contiguous numbers on every node, and rows go to them in this order, so the rows of a
matrix that lie on a node are one piece. Machines that are not here are described in hwloc's words.

Examples:
  lockstep topology
  lockstep topology --numa one-node --numa-level socket
  lockstep topology -m model.gguf --json
  lockstep topology --svg machine.svg
  HWLOC_SYNTHETIC="Package:2 [NUMANode(memory=64GiB)] L3:1 Core:24 PU:2" lockstep topology
)";

struct ShowTopology {
  std::string model, svg;
  EngineArguments engine;
  std::size_t rows = 4096;
  bool json = false;

  int run() const;
  ExampleMatrix matrix(const Engine& team) const;
};

// The widest matrix of the first layer, as the loader would divide it.
ExampleMatrix ShowTopology::matrix(const Engine& team) const {
  if (model.empty()) return {"an example matrix", rows, 1};
  constexpr const char* kName = "blk.0.ffn_gate.weight";
  const GgufFile file = GgufFile::open(model);
  const GgufTensor* const tensor = file.find_tensor(kName);
  if (tensor == nullptr || tensor->dims.size() < 2) {
    file.refuse(fmt::format("there is no matrix \"{}\" whose rows could be shown", kName));
  }
  const quant::MatmulKernel* const kernel =
      ops::find_kernel(tensor->format->format, team.impl().isa);
  return {kName, tensor->dims[1], kernel != nullptr ? kernel->panel_rows : 1};
}

// hwloc draws: its command line program has the export, its library does not.
void draw_svg(const std::string& path) {
  constexpr const char* kProgram = "lstopo-no-graphics";
  require_creatable(path);
  const std::string part = path + ".part";
  std::string words[] = {kProgram, "--of", "nativesvg", "--force", part};
  char* arguments[std::size(words) + 1] = {};
  for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
  pid_t child = 0;
  const int error = posix_spawnp(&child, kProgram, nullptr, nullptr, arguments, environ);
  int status = 0;
  const bool waited = error == 0 && waitpid(child, &status, 0) == child;
  if (error == ENOENT) {
    throw Error(
        ErrorCode::no_resource,
        fmt::format("{} draws the picture and is not installed (package hwloc-nox or hwloc)",
                    kProgram));
  }
  if (!waited || status != 0 || std::rename(part.c_str(), path.c_str()) != 0) {
    std::remove(part.c_str());
    throw Error(ErrorCode::io, fmt::format("{} could not draw {}", kProgram, path));
  }
}

int ShowTopology::run() const {
  const Engine team = engine.create();
  const ExampleMatrix example = matrix(team);
  if (!svg.empty()) draw_svg(svg);
  print(json ? topology_json(team, example).dump(2) + "\n" : topology_text(team, example));
  return 0;
}

}  // namespace

Command add_topology(CLI::App& root) {
  const auto self = std::make_shared<ShowTopology>();
  CLI::App* app = root.add_subcommand(
      "topology", "Show the machine, where workers and rows go, and what limits their number");
  app->add_option("-m,--model", self->model, "Show rows of a matrix of this GGUF file")
      ->type_name("FILE");
  app->add_option("--rows", self->rows, "Rows of the example matrix (default 4096)")
      ->type_name("N")
      ->check(whole_number(1, 1u << 30));
  app->add_option("--svg", self->svg, "Draw the machine into this file, too; must not exist")
      ->type_name("FILE");
  app->add_flag("--json", self->json, "As one JSON object");
  self->engine.add_to(*app);
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
