// fork and exec rather than posix_spawn: limits and the affinity mask are set in between. The
// streams are files, so no pipe can fill up.
#include "test/cli/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/temp_dir.h"

namespace lockstep::test {

namespace {

constexpr auto kTimeLimit = std::chrono::seconds(120);
constexpr int kExecFailed = 127;

void keep_one_processor() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) ::_exit(kExecFailed);
  int first = 0;
  while (!CPU_ISSET(first, &mask)) ++first;
  CPU_ZERO(&mask);
  CPU_SET(first, &mask);
  if (::sched_setaffinity(0, sizeof mask, &mask) != 0) ::_exit(kExecFailed);
}

[[noreturn]] void become(const Invocation& invocation, const TempDir& dir) {
  const int in = ::open((dir.path() / "in").c_str(), O_RDONLY);
  const std::string out_path =
      invocation.output_to ? invocation.output_to : (dir.path() / "out").string();
  const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string err_path =
      invocation.errors_to ? invocation.errors_to : (dir.path() / "err").string();
  const int err = ::open(err_path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(kExecFailed);
  for (const auto& [name, value] : invocation.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (invocation.one_processor) keep_one_processor();
  if (invocation.file_bytes >= 0) {
    const auto bytes = static_cast<rlim_t>(invocation.file_bytes);
    const rlimit limit{bytes, bytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(kExecFailed);
  }
  std::vector<std::string> words = invocation.launcher;
  words.emplace_back(LOCKSTEP_COMMAND);
  words.insert(words.end(), invocation.arguments.begin(), invocation.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(kExecFailed);
}

int wait_for(pid_t child, bool& timed_out) {
  const auto limit = std::chrono::steady_clock::now() + kTimeLimit;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > limit) {
      timed_out = true;
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

}  // namespace

std::vector<std::string> Outcome::messages() const {
  std::vector<std::string> lines;
  std::istringstream stream(err);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Outcome run(const Invocation& invocation) {
  const TempDir dir;
  dir.write("in", invocation.input);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(invocation, dir);
  if (invocation.meanwhile) invocation.meanwhile(child);
  Outcome outcome;
  const int status = wait_for(child, outcome.timed_out);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.out = invocation.output_to ? "" : TempDir::read(dir.path() / "out");
  outcome.err = invocation.errors_to ? "" : TempDir::read(dir.path() / "err");
  return outcome;
}

bool wait_until(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + kTimeLimit / 2;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Outcome run(const std::vector<std::string>& arguments) {
  Invocation invocation;
  invocation.arguments = arguments;
  return run(invocation);
}

}  // namespace lockstep::test
