// See mpi_ranks.h.
#include "test/cli/mpi_ranks.h"

#include <fstream>
#include <string>

namespace lockstep::test {
namespace {

bool is_rank(const std::filesystem::path& process, pid_t mpirun, unsigned rank) {
  std::ifstream status(process / "status");
  std::string parent;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("PPid:")) parent = line.substr(line.find_last_of("\t ") + 1);
  }
  if (parent != std::to_string(mpirun)) return false;
  const std::string variables = TempDir::read(process / "environ");
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
  return variables.find(wanted) != std::string::npos;
}

}  // namespace

std::string open_mpi_version() {
  const std::string mark = "MPI: Open MPI ";
  const std::string text = run({"--version"}).out;
  const std::size_t at = text.find(mark);
  if (at == text.npos || std::string(LOCKSTEP_MPIRUN).empty()) return "";
  const std::size_t begin = at + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

Invocation under_mpirun(unsigned ranks, const std::vector<std::string>& options) {
  Invocation how;
  how.launcher = {LOCKSTEP_MPIRUN,      "--oversubscribe", "--bind-to", "none", "-n",
                  std::to_string(ranks)};
  how.launcher.insert(how.launcher.end(), options.begin(), options.end());
  const char* const asan = std::getenv("ASAN_OPTIONS");
  how.environment = {
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      // A container may forbid reading another process's memory.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
      // Open MPI does not free all of its memory.
      {"ASAN_OPTIONS", std::string(asan != nullptr ? asan : "") + ":detect_leaks=0"}};
  return how;
}

Invocation under_mpirun(const SharedJob& first, const SharedJob& second,
                        const std::vector<std::string>& options_of_second) {
  Invocation both = under_mpirun(1);
  both.arguments = first.arguments();
  for (const char* const word : {":", "--oversubscribe", "-n", "1", LOCKSTEP_COMMAND}) {
    both.arguments.emplace_back(word);
  }
  for (const std::string& word : second.arguments(options_of_second)) {
    both.arguments.push_back(word);
  }
  return both;
}

pid_t process_of_rank(pid_t mpirun, unsigned rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (is_rank(entry.path(), mpirun, rank)) return static_cast<pid_t>(std::stol(name));
  }
  return -1;
}

}  // namespace lockstep::test
