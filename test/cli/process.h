// Running the real `lockstep` executable: arguments, environment, limits and signals in, exit code
// and both streams out. A run that hangs is killed and fails the test.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

struct Invocation {
  std::vector<std::string> launcher;  // a program and its options that start the command, or none
  std::vector<std::string> arguments;
  std::string input;                                             // its standard input
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  bool one_processor = false;                                    // affinity mask of one processor
  long file_bytes = -1;                  // limit for the files that it writes (RLIMIT_FSIZE), or -1
  const char* output_to = nullptr;       // a device or pipe for its standard output, not a capture
  const char* errors_to = nullptr;       // the same for its standard error
  std::function<void(pid_t)> meanwhile;  // called once while it runs
};

struct Outcome {
  int code = -1;  // exit code, or -1 if a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out, err;

  // Lines of stderr.
  std::vector<std::string> messages() const;
};

Outcome run(const Invocation& invocation);
// Waits, for a minute at most, until this holds; asks a thousand times a second.
bool wait_until(const std::function<bool()>& condition);
Outcome run(const std::vector<std::string>& arguments);

}  // namespace lockstep::test
