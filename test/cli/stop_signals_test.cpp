// The handlers of stop signals, each case in a child of its own: they end processes.
#include "runtime/cli/stop_signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "support/catch.h"

using lockstep::cli::CancelOnDrop;
using lockstep::cli::StopSignals;

namespace {

constexpr int kLongGrace = 3600;
constexpr int kWrong = 99;

// What a child that does this exits with; its own choice is 0 if `body` is true.
int exit_code_of(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : kWrong);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("the first signal asks for a stop, the second ends what has nothing to lose") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    CHECK(exit_code_of([&] {
            const StopSignals signals(kLongGrace);
            if (signals.stop()) return false;
            ::raise(signal);
            return signals.stop() && !signals.drop();
          }) == 0);
    CHECK(exit_code_of([&] {
            const StopSignals signals(kLongGrace);
            ::raise(signal);
            ::raise(SIGTERM);
            return false;
          }) == 75);
  }
}

TEST_CASE("where rows could be lost the second signal raises the flag instead") {
  CHECK(exit_code_of([] {
          const StopSignals signals(kLongGrace);
          std::atomic<bool> cancel{false};
          const CancelOnDrop guard(cancel);
          ::raise(SIGTERM);
          if (cancel || !signals.stop()) return false;
          ::raise(SIGUSR1);
          return cancel && signals.drop();
        }) == 0);
}

TEST_CASE("the end of the period of grace is like a second signal") {
  CHECK(exit_code_of([] {
          const StopSignals signals(0.02);
          ::raise(SIGTERM);
          for (;;) ::pause();
          return false;
        }) == 75);
  CHECK(exit_code_of([] {
          const StopSignals signals(0);
          ::raise(SIGTERM);
          return false;
        }) == 75);
  CHECK(exit_code_of([] {
          const StopSignals signals(0.02);
          std::atomic<bool> cancel{false};
          const CancelOnDrop guard(cancel);
          ::raise(SIGINT);
          while (!cancel) ::usleep(1000);
          return static_cast<bool>(signals.drop());
        }) == 0);
}

TEST_CASE("a signal that was ignored stays so, and the handlers go with their owner") {
  CHECK(exit_code_of([] {
          ::signal(SIGINT, SIG_IGN);
          const StopSignals signals(kLongGrace);
          ::raise(SIGINT);
          return !signals.stop();
        }) == 0);
  CHECK(exit_code_of([] {
          { const StopSignals signals(kLongGrace); }
          ::raise(SIGTERM);
          return false;
        }) == -SIGTERM);
}
